//! A node with `--dev` is found by the command line, and says what to type; one whose port is taken says so.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use cluster_harness::ports::free_addresses;
use quorate_client::DEFAULT_ENDPOINTS;
use quorate_node::config::DEV_CLIENT_LISTEN;

use super::guide::{built, command};

/// Ends with the test, however that goes.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only where it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn dev_node(addresses: &[SocketAddr]) -> Command {
    let mut command = command(built("quorate-node"));
    command.stdin(Stdio::null()).arg("--dev").arg("--client-listen").arg(addresses[0].to_string());
    command.arg("--peer-listen").arg(addresses[1].to_string());
    command
}

#[test]
fn the_command_line_looks_first_where_such_a_node_serves() {
    assert_eq!(DEFAULT_ENDPOINTS.split(',').next(), Some(DEV_CLIENT_LISTEN));
}

#[test]
fn the_commands_that_it_names_work_as_they_are_typed() {
    let addresses = free_addresses(2);
    let mut node = Running(dev_node(&addresses).stderr(Stdio::piped()).spawn().expect("the node starts"));
    let lines = BufReader::new(node.0.stderr.take().expect("a pipe")).lines().map(|line| line.expect("text"));
    // The pipe ends with the node, so this waits for no longer than it runs.
    let mut lines = lines.skip_while(|line| !line.starts_with("A node to try things with serves at "));
    let greeting = lines.next().expect("the node greets before it ends");
    assert!(greeting.contains(&addresses[0].to_string()), "{greeting}");
    let commands: Vec<_> = lines.by_ref().take(3).collect();
    let programs = built("quorate").parent().expect("a program is in a directory").display().to_string();
    let path = format!("{programs}:{}", std::env::var("PATH").expect("there is a PATH"));
    for (typed, shown) in commands.iter().zip(["written: greeting", "\"hello\"", "\"value\":\"hello\""]) {
        let done = command("sh").args(["-c", typed]).env("PATH", &path).output().expect("there is a shell");
        let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success() && out.contains(shown), "{typed}: {out}{err}");
    }
}

#[test]
fn a_taken_port_is_told_with_what_to_do() {
    let addresses = free_addresses(2);
    let _other = std::net::TcpListener::bind(addresses[0]).expect("it was free");
    let done = dev_node(&addresses).output().expect("the node starts");
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{said}");
    let expected = format!("cannot listen for clients at {}: the address is in use", addresses[0]);
    assert!(said.contains(&expected) && said.contains("--client-listen"), "{said}");
    // The port is not one that outgoing connections get.
    assert!(!said.contains("outgoing"), "{said}");

    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let server = listener.local_addr().expect("bound");
    let connection = std::net::TcpStream::connect(server).expect("it listens");
    let outgoing = connection.local_addr().expect("it is connected");
    let done = dev_node(&[outgoing, addresses[1]]).output().expect("the node starts");
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("the address is in use") && said.contains("an outgoing connection"), "{said}");
}
