//! A network between processes that can be cut, slowed down and broken, for each ordered pair of nodes by itself.
//!
//! Owns proxies in front of the nodes' ports, and the rules by which they pass bytes on. Who dialled is known from the owner of the
//! socket at the other end, so nothing of what is said is read, encrypted or not. Never loses a byte of a connection that lives: what is held
//! back arrives late, as with a network that comes back before a connection gives up.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, SocketAddrV4};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// Whoever is no node: clients.
pub const CLIENTS: u64 = 0;
/// Bytes that are read at once.
const CHUNK_BYTES: usize = 16 * 1024;
/// Chunks of one direction that are on their way, as in the buffers of a real connection.
const CHUNKS_MAX: usize = 64;

/// What becomes of bytes from one node to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// They arrive this much later.
    Delay(Duration),
    /// They wait until the rule is gone.
    Stall,
    /// Their connection is closed.
    Reset,
}

/// Rules by sender and receiver; without one, bytes arrive at once.
type Rules = BTreeMap<(u64, u64), Rule>;

/// All links between nodes, and between clients and nodes.
#[derive(Debug, Clone)]
pub struct Network {
    rules: watch::Sender<Rules>,
    processes: Arc<Mutex<BTreeMap<u64, u32>>>,
}

impl Default for Network {
    fn default() -> Self {
        Self { rules: watch::Sender::new(Rules::new()), processes: Arc::default() }
    }
}

impl Network {
    /// Passes on to `to`, the peer port of node `node`, what nodes send to `at`. Ends with the runtime.
    pub fn open_to_peers(&self, at: SocketAddr, to: SocketAddr, node: u64) -> io::Result<()> {
        let (listener, network) = (listen(at)?, self.clone());
        tokio::spawn(async move {
            while let Ok((near, dialler)) = listener.accept().await {
                let network = network.clone();
                tokio::spawn(async move {
                    // Not `at`, which may stand for all addresses of this machine.
                    let Ok(dialled) = near.local_addr() else { return };
                    let seeking = network.clone();
                    let from = tokio::task::spawn_blocking(move || seeking.node_of(dialler, dialled)).await;
                    connect(near, to, from.unwrap_or(CLIENTS), node, network.rules).await;
                });
            }
        });
        Ok(())
    }

    /// Passes on to `to`, the client port of node `node`, what clients send to `at`. Ends with the runtime.
    pub fn open_to_clients(&self, at: SocketAddr, to: SocketAddr, node: u64) -> io::Result<()> {
        let (listener, rules) = (listen(at)?, self.rules.clone());
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(connect(near, to, CLIENTS, node, rules.clone()));
            }
        });
        Ok(())
    }

    /// From now on this is the process of a node.
    pub fn note_process(&self, node: u64, process: u32) {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner).insert(node, process);
    }

    /// From now on this becomes of bytes from one to the other.
    pub fn rule(&self, from: u64, to: u64, rule: Rule) {
        self.rules.send_modify(|rules| {
            rules.insert((from, to), rule);
        });
    }

    /// The same in both directions.
    pub fn rule_both(&self, one: u64, other: u64, rule: Rule) {
        self.rule(one, other, rule);
        self.rule(other, one, rule);
    }

    /// All bytes arrive at once again, those held back too.
    pub fn heal(&self) {
        self.rules.send_modify(Rules::clear);
    }

    /// The node that dialled the second address from the first.
    fn node_of(&self, dialler: SocketAddr, dialled: SocketAddr) -> u64 {
        let processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(inode) = socket_inode(dialler, dialled) else { return CLIENTS };
        let owner = processes.into_iter().find(|(_, process)| owns_socket(*process, &inode));
        owner.map_or(CLIENTS, |(node, _)| node)
    }
}

fn listen(at: SocketAddr) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::bind(at)?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// How often the table of sockets is read for one: it is not read at one moment, so a row can be missed while others come and go.
const READS_MAX: usize = 20;

/// The inode of the socket that is connected from the first address to the second, which somebody has open.
fn socket_inode(local: SocketAddr, remote: SocketAddr) -> Option<String> {
    (0..READS_MAX).find_map(|_| read_socket_inode(local, remote))
}

/// Both ends name a connection. One alone does not: the kernel gives the same local address to connections that go to different places,
/// which may be those of several nodes and of other programs.
fn read_socket_inode(local: SocketAddr, remote: SocketAddr) -> Option<String> {
    let (SocketAddr::V4(local), SocketAddr::V4(remote)) = (local, remote) else { return None };
    // They stand behind the number of the row.
    let wanted = format!(": {} {} ", as_in_table(local), as_in_table(remote));
    let table = std::fs::read_to_string("/proc/net/tcp").ok()?;
    // Of a connection that is over, between the same addresses, nobody has the socket: its inode is 0.
    let inodes = table.lines().filter(|line| line.contains(&wanted)).filter_map(|row| row.split_whitespace().nth(9));
    inodes.into_iter().find(|inode| *inode != "0").map(str::to_owned)
}

/// The kernel writes an address as the number that its four bytes make in memory.
fn as_in_table(address: SocketAddrV4) -> String {
    format!("{:08X}:{:04X}", u32::from_ne_bytes(address.ip().octets()), address.port())
}

/// Whether the process has this socket open.
fn owns_socket(process: u32, inode: &str) -> bool {
    let wanted = format!("socket:[{inode}]");
    let Ok(files) = std::fs::read_dir(format!("/proc/{process}/fd")) else { return false };
    files.flatten().any(|file| std::fs::read_link(file.path()).is_ok_and(|link| link.as_os_str() == wanted.as_str()))
}

/// One connection, from when it was accepted to its end.
async fn connect(near: TcpStream, to: SocketAddr, from: u64, node: u64, rules: watch::Sender<Rules>) {
    let Ok(far) = TcpStream::connect(to).await else { return };
    // Without it small messages would wait for each other.
    if near.set_nodelay(true).and(far.set_nodelay(true)).is_err() {
        return;
    }
    let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
    let there = Link { key: (from, node), rules: rules.subscribe() };
    let back = Link { key: (node, from), rules: rules.subscribe() };
    // Whichever direction ends first ends the connection.
    tokio::select! {
        () = there.pass(near_in, far_out) => {}
        () = back.pass(far_in, near_out) => {}
    }
}

/// One direction of a connection.
struct Link {
    key: (u64, u64),
    rules: watch::Receiver<Rules>,
}

impl Link {
    async fn pass(self, input: OwnedReadHalf, output: OwnedWriteHalf) {
        let (chunks, queue) = mpsc::channel(CHUNKS_MAX);
        // The end comes once everything before it was delivered, or nothing more can be.
        let taking = async {
            take(input, chunks).await;
            std::future::pending().await
        };
        tokio::select! {
            () = taking => {}
            () = self.deliver(queue, output) => {}
        }
    }

    async fn deliver(mut self, mut queue: mpsc::Receiver<(Instant, Vec<u8>)>, mut output: OwnedWriteHalf) {
        while let Some((came, bytes)) = queue.recv().await {
            if !self.may_pass(came).await || output.write_all(&bytes).await.is_err() {
                return;
            }
        }
    }

    /// Waits until bytes that came at this time may go on; `false` if their connection is to be closed.
    async fn may_pass(&mut self, came: Instant) -> bool {
        loop {
            let rule = self.rules.borrow_and_update().get(&self.key).copied();
            let until = match rule {
                None => return true,
                Some(Rule::Reset) => return false,
                Some(Rule::Delay(delay)) => came + delay,
                Some(Rule::Stall) => came + Duration::from_secs(3_600),
            };
            tokio::select! {
                () = tokio::time::sleep_until(until) => return true,
                changed = self.rules.changed() => if changed.is_err() { return false },
            }
        }
    }
}

/// Takes what comes until it ends.
async fn take(mut input: OwnedReadHalf, chunks: mpsc::Sender<(Instant, Vec<u8>)>) {
    loop {
        let mut bytes = vec![0; CHUNK_BYTES];
        match input.read(&mut bytes).await {
            Ok(count) if count > 0 => bytes.truncate(count),
            _ => return,
        }
        if chunks.send((Instant::now(), bytes)).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use socket2::{Domain, Socket, Type};

    use super::*;
    use crate::ports::free_addresses;

    /// An echo behind a proxy, and a connection to it.
    async fn echo(network: &Network) -> TcpStream {
        let addresses = free_addresses(2);
        let listener = TcpListener::bind(addresses[0]).await.expect("a free port");
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (mut input, mut output) = stream.into_split();
                tokio::spawn(async move { tokio::io::copy(&mut input, &mut output).await });
            }
        });
        network.open_to_clients(addresses[1], addresses[0], 1).expect("a free port");
        TcpStream::connect(addresses[1]).await.expect("the proxy listens")
    }

    async fn exchange(stream: &mut TcpStream) -> io::Result<u8> {
        stream.write_all(b"x").await?;
        stream.read_u8().await
    }

    #[tokio::test]
    async fn bytes_are_passed_delayed_held_back_and_their_connections_closed() {
        let network = Network::default();
        let mut stream = echo(&network).await;
        assert_eq!(exchange(&mut stream).await.expect("passed on"), b'x');
        network.rule(CLIENTS, 1, Rule::Delay(Duration::from_millis(80)));
        let begun = Instant::now();
        assert_eq!(exchange(&mut stream).await.expect("passed on"), b'x');
        assert!(begun.elapsed() >= Duration::from_millis(80), "{:?}", begun.elapsed());
        network.heal();
        network.rule(1, CLIENTS, Rule::Stall);
        let held = tokio::time::timeout(Duration::from_millis(200), exchange(&mut stream)).await;
        assert!(held.is_err(), "the answer is held back");
        network.heal();
        assert_eq!(stream.read_u8().await.expect("it comes late"), b'x');
        network.rule(CLIENTS, 1, Rule::Reset);
        assert!(exchange(&mut stream).await.is_err());
    }

    #[tokio::test]
    async fn who_dialled_is_known_from_its_socket() {
        let network = Network::default();
        network.note_process(7, std::process::id());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let (stream, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let (_stream, (_accepted, dialler)) = (stream.expect("connected"), accepted.expect("accepted"));
        assert_eq!(network.node_of(dialler, address), 7);
        assert_eq!(network.node_of("127.0.0.1:1".parse().expect("an address"), address), CLIENTS);
    }

    /// A connection from this address, which others may have, too; port 0 is any.
    fn connect_from(local: SocketAddr, remote: SocketAddr) -> Socket {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.set_reuse_address(true).expect("an option of every system");
        socket.bind(&local.into()).expect("the others that have this address go elsewhere");
        socket.connect(&remote.into()).expect("it listens");
        socket
    }

    /// The name that the kernel gives to a socket which this process has open.
    fn inode_of(socket: &Socket) -> String {
        let link = std::fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd())).expect("it is open");
        let text = link.to_str().expect("text");
        text.trim_start_matches("socket:[").trim_end_matches(']').to_owned()
    }

    #[test]
    fn connections_with_one_local_address_are_told_apart() {
        let listeners = [(); 2].map(|()| std::net::TcpListener::bind("127.0.0.1:0").expect("a free port"));
        let remotes = listeners.each_ref().map(|listener| listener.local_addr().expect("it is bound"));
        let first = connect_from("127.0.0.1:0".parse().expect("an address"), remotes[0]);
        let local = first.local_addr().expect("it is bound").as_socket().expect("an address of IP");
        let second = connect_from(local, remotes[1]);
        assert_eq!(socket_inode(local, remotes[0]), Some(inode_of(&first)));
        assert_eq!(socket_inode(local, remotes[1]), Some(inode_of(&second)));
        assert_eq!(socket_inode(local, "127.0.0.1:1".parse().expect("an address")), None);
    }
}
