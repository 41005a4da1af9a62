//! The files under `scripts/deploy/`: as far as a machine without Docker, Kubernetes and systemd can tell, they work.
//!
//! Owns no opinion on how to deploy. Checks that what they say to the programs is understood by them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use quorate_node::http::all_routes;
use quorate_node::tls::{Authority, Lifetime, Subject};
use serde_json::Value;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/deploy").join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(file(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn node(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorate-node"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("QUORATE_")) {
        command.env_remove(name);
    }
    command.args(arguments).output().expect("the program can be run")
}

fn help() -> String {
    String::from_utf8(node(&["--help"]).stdout).expect("the help is text")
}

/// Words of a text that begin so, cut where they end.
fn words<'t>(text: &'t str, start: &str) -> BTreeSet<&'t str> {
    let is_end = |c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_');
    let found = text.match_indices(start).map(|(at, _)| {
        let rest = &text[at..];
        let end = rest[start.len()..].find(is_end).map_or(rest.len(), |end| end + start.len());
        (&text[..at], &rest[..end])
    });
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
    // Three dashes begin a document of YAML.
    let is_whole = |before: &str, word: &str| {
        !before.ends_with(is_word) && word[start.len()..].starts_with(|c: char| c.is_ascii_alphanumeric())
    };
    found.filter(|(before, word)| is_whole(before, word)).map(|(_, word)| word).collect()
}

fn documents(name: &str) -> Vec<Value> {
    let documents = serde_saphyr::from_multiple(&text(name));
    documents.unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Where the examples have their certificates.
const CERTIFICATES: &str = "/etc/quorate/tls";

/// A directory with what the examples expect there, for this node.
fn certificates(id: u64) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::create(dir.path(), Lifetime::days(1)).unwrap();
    let node = Subject::Node { id, hosts: vec!["localhost".into()] };
    let issued = authority.issue(&node, Lifetime::days(1)).unwrap();
    for name in ["node", "tls"] {
        std::fs::copy(&issued.cert, dir.path().join(name).with_extension("crt")).unwrap();
        std::fs::copy(&issued.key, dir.path().join(name).with_extension("key")).unwrap();
    }
    dir
}

#[test]
fn the_example_configurations_are_accepted() {
    let dir = certificates(1);
    for name in ["node.toml", "node-of-three.toml"] {
        let path = dir.path().join(name);
        std::fs::write(&path, text(name).replace(CERTIFICATES, dir.path().to_str().unwrap())).unwrap();
        let checked = node(&["config", "check", "--config", path.to_str().unwrap()]);
        assert!(checked.status.success(), "{name}: {}", String::from_utf8_lossy(&checked.stderr));
    }
}

/// What is installed has to be found by a command line that is told nothing, and to be reached by nobody else.
#[test]
fn the_configuration_that_is_installed_serves_where_the_command_line_looks() {
    let settings: toml::Table = text("node.toml").parse().unwrap();
    assert_eq!(settings["client_listen"].as_str(), Some(quorate_node::config::DEV_CLIENT_LISTEN));
    let join = format!("1={}", settings["peer_listen"].as_str().unwrap());
    assert_eq!(settings["join"].as_str(), Some(join.as_str()));
    let unit = text("quorate-node.service");
    let state = unit.lines().find_map(|line| line.strip_prefix("StateDirectory=")).expect("the unit names a directory");
    let data = settings["data_dir"].as_str().unwrap();
    assert!(Path::new(data).starts_with(Path::new("/var/lib").join(state)), "the unit lets the node write to {data}");
}

#[test]
fn who_reads_an_answer_may_go_before_its_end() {
    let dir = certificates(1);
    let path = dir.path().join("node.toml");
    std::fs::write(&path, text("node-of-three.toml").replace(CERTIFICATES, dir.path().to_str().unwrap())).unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorate-node"));
    let done = command.args(["config", "check", "--config"]).arg(&path).stdout(writer).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(done.stderr.is_empty(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn every_flag_and_variable_of_the_deployments_is_one_of_the_node() {
    let help = help();
    let mut looked_at = 0;
    for name in ["kubernetes.yaml", "quorate-node.service"] {
        let text = text(name);
        for flag in words(&text, "--") {
            assert!(words(&help, "--").contains(flag), "{name}: {flag} is no flag of quorate-node");
            looked_at += 1;
        }
        for variable in words(&text, "QUORATE_") {
            assert!(words(&help, "QUORATE_").contains(variable), "{name}: the node reads no variable {variable}");
            looked_at += 1;
        }
    }
    assert!(looked_at >= 8, "only {looked_at} words looked at");
    // The image has the client's programs too, whose variables are others.
    let of_client = ["QUORATE_ENDPOINTS", "QUORATE_CA"];
    for variable in words(&text("Dockerfile"), "QUORATE_") {
        let is_known = words(&help, "QUORATE_").contains(variable) || of_client.contains(&variable);
        assert!(is_known, "Dockerfile: nobody reads {variable}");
    }
}

/// All values below this name, wherever it stands.
fn below<'v>(value: &'v Value, name: &str, found: &mut Vec<&'v Value>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                if field == name {
                    found.push(value);
                }
                below(value, name, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| below(item, name, found)),
        _ => {}
    }
}

#[test]
fn the_objects_of_kubernetes_fit_each_other_and_probe_real_routes() {
    let documents = documents("kubernetes.yaml");
    let kinds: Vec<_> = documents.iter().map(|object| object["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["Service", "Service", "PodDisruptionBudget", "StatefulSet"]);
    let set = &documents[3]["spec"];
    assert_eq!(set["serviceName"], documents[0]["metadata"]["name"]);
    let labels = &set["template"]["metadata"]["labels"];
    for selector in
        [&documents[0]["spec"]["selector"], &documents[1]["spec"]["selector"], &set["selector"]["matchLabels"]]
    {
        assert_eq!(selector, labels);
    }
    assert_eq!(&documents[2]["spec"]["selector"]["matchLabels"], labels);
    let container = &set["template"]["spec"]["containers"][0];
    let ports: BTreeSet<_> = container["ports"].as_array().unwrap().iter().map(|port| port["name"].as_str()).collect();
    let mut probes = Vec::new();
    below(container, "httpGet", &mut probes);
    assert_eq!(probes.len(), 3, "a startup, a liveness and a readiness probe");
    for probe in probes {
        let path = probe["path"].as_str().unwrap();
        assert!(all_routes().iter().any(|route| route.template() == path), "{path} is no route");
        assert!(ports.contains(&probe["port"].as_str()), "{} is no port of the container", probe["port"]);
    }
    let replicas = set["replicas"].as_u64().unwrap();
    let command = container["command"][2].as_str().unwrap();
    for id in 1..=replicas {
        let member = format!("{id}=quorate-{}.quorate-peers:7200", id - 1);
        assert!(command.contains(&member), "{member} is missing in {command}");
    }
}

#[test]
fn the_command_of_the_pods_gives_a_configuration_that_is_accepted() {
    let documents = documents("kubernetes.yaml");
    let container = &documents[3]["spec"]["template"]["spec"]["containers"][0];
    let command = container["command"][2].as_str().unwrap();
    let program = env!("CARGO_BIN_EXE_quorate-node");
    let command = command.replace("exec quorate-node", &format!("exec {program} config check"));
    let dir = certificates(3);
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &command]).env_clear().env("POD_NAME", "quorate-2");
    for variable in container["env"].as_array().unwrap() {
        if let Some(value) = variable["value"].as_str() {
            let value = value.replace(CERTIFICATES, dir.path().to_str().unwrap());
            shell.env(variable["name"].as_str().unwrap(), value);
        }
    }
    let checked = shell.output().unwrap();
    let said = String::from_utf8_lossy(&checked.stdout).into_owned() + &String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success() && said.contains("Node 3"), "{said}");
}

#[test]
fn the_unit_restarts_only_after_what_may_be_better_the_second_time() {
    let unit = text("quorate-node.service");
    let forbidden: Vec<_> = unit.lines().filter_map(|line| line.strip_prefix("RestartPreventExitStatus=")).collect();
    let expected = format!("2 {} {}", quorate_node::EXIT_STORAGE, quorate_node::EXIT_REMOVED);
    assert_eq!(
        forbidden,
        [expected.as_str()],
        "wrong usage, storage that is not to be trusted, a node that was removed"
    );
    assert!(unit.lines().any(|line| line == "Restart=on-failure"));
    // systemd asks only the main process for its exit code.
    assert!(!unit.contains("\nExecStartPre="), "what it finds wrong would be tried again and again");
}

/// `systemd-analyze verify` wants the programs to be where the unit says, so it gets a copy that names the one just built.
#[test]
fn systemd_accepts_the_unit_where_there_is_a_systemd() {
    let Ok(version) = Command::new("systemd-analyze").arg("--version").output() else {
        println!("there is no systemd-analyze here");
        return;
    };
    assert!(version.status.success());
    let unit = text("quorate-node.service").replace("/usr/local/bin/quorate-node", env!("CARGO_BIN_EXE_quorate-node"));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("quorate-node.service");
    std::fs::write(&path, unit).unwrap();
    let verified = Command::new("systemd-analyze").arg("verify").arg("--man=no").arg(&path).output().unwrap();
    let said = String::from_utf8_lossy(&verified.stderr);
    let about_the_unit: Vec<_> = said.lines().filter(|line| line.contains("quorate-node.service")).collect();
    assert!(about_the_unit.is_empty(), "{}", about_the_unit.join("\n"));
}

#[test]
fn the_image_runs_as_nobody_special_and_says_when_it_is_well() {
    let image = text("Dockerfile");
    let instructions: Vec<_> = image.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let stages = instructions.iter().filter(|word| **word == "FROM").count();
    assert_eq!(stages, 2, "built in one stage, run in another");
    for needed in ["USER", "HEALTHCHECK", "VOLUME", "ENTRYPOINT", "STOPSIGNAL"] {
        assert!(instructions.contains(&needed), "{needed} is missing");
    }
    assert!(
        image.lines().any(|line| line.starts_with("USER 1")),
        "a number, so that Kubernetes can see it is not root"
    );
}
