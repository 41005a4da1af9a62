//! The files under `scripts/deploy/`: as far as a machine without Docker, Kubernetes and systemd can tell, they work.
//!
//! Owns no opinion on how to deploy. Checks that what they say to the programs is understood by them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use quorate_node_core::tls::{Authority, Lifetime, Subject};
use quorate_node_http::all_routes;
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

/// The one object in a file.
fn object(name: &str) -> Value {
    let mut documents = documents(name);
    assert_eq!(documents.len(), 1, "{name}");
    documents.remove(0)
}

const STATEFUL_SET: &str = "kubernetes/base/statefulset.yaml";

/// Where the examples have their certificates.
const CERTIFICATES: &str = "/etc/quorate/tls";

/// A directory with what the examples expect there, for this node.
fn certificates(id: u64) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::create(dir.path(), Lifetime::days(1)).unwrap();
    // Also under its ids in reserve.
    let hosts = (1..=9).map(|spare| format!("node-{}.quorate", 100 * id + spare));
    let node = Subject::Node { id, hosts: std::iter::once("localhost".to_owned()).chain(hosts).collect() };
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
    for name in [STATEFUL_SET, "kubernetes/trial/plain.yaml", "quorate-node.service"] {
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
    let of_others = ["QUORATE_ENDPOINTS", "QUORATE_CA", "QUORATE_IMAGE"];
    for name in IMAGES.into_iter().chain(["compose.yaml"]) {
        for variable in words(&text(name), "QUORATE_") {
            let is_known = words(&help, "QUORATE_").contains(variable) || of_others.contains(&variable);
            assert!(is_known, "{name}: nobody reads {variable}");
        }
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
    let services = documents("kubernetes/base/services.yaml");
    let [budget, policy, set] =
        ["kubernetes/base/disruption-budget.yaml", "kubernetes/base/network-policy.yaml", STATEFUL_SET].map(object);
    let kinds = [&services[0], &services[1], &budget, &policy, &set].map(|object| object["kind"].as_str().unwrap());
    assert_eq!(kinds, ["Service", "Service", "PodDisruptionBudget", "NetworkPolicy", "StatefulSet"]);
    let set = &set["spec"];
    assert_eq!(set["serviceName"], services[0]["metadata"]["name"]);
    let labels = &set["template"]["metadata"]["labels"];
    let selectors = [
        &services[0]["spec"]["selector"],
        &services[1]["spec"]["selector"],
        &set["selector"]["matchLabels"],
        &budget["spec"]["selector"]["matchLabels"],
        &policy["spec"]["podSelector"]["matchLabels"],
    ];
    for selector in selectors {
        assert_eq!(selector, labels);
    }
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
        let member = format!("{id}=node-{id}.quorate-peers:7200");
        assert!(command.contains(&member), "{member} is missing in {command}");
    }
}

#[test]
fn the_command_of_the_pods_gives_a_configuration_that_is_accepted() {
    let set = object(STATEFUL_SET);
    let container = &set["spec"]["template"]["spec"]["containers"][0];
    let command = container["command"][2].as_str().unwrap();
    let program = env!("CARGO_BIN_EXE_quorate-node");
    let command = command.replace("exec quorate-node", &format!("exec {program} config check"));
    let dir = certificates(3);
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &command]).env_clear().env("POD_NAME", "node-3");
    for variable in container["env"].as_array().unwrap() {
        if let Some(value) = variable["value"].as_str() {
            let place = dir.path().to_str().unwrap();
            let value = value.replace("/etc/quorate/clients", place).replace(CERTIFICATES, place);
            shell.env(variable["name"].as_str().unwrap(), value);
        }
    }
    let checked = shell.output().unwrap();
    let said = String::from_utf8_lossy(&checked.stdout).into_owned() + &String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success() && said.contains("Node 3"), "{said}");
}

fn strings<'v>(list: &'v Value, name: &str) -> BTreeSet<&'v str> {
    list.as_array().unwrap().iter().filter_map(|item| item[name].as_str()).collect()
}

#[test]
fn what_builds_on_the_objects_takes_away_what_is_there() {
    let set = object(STATEFUL_SET);
    let patch = object("kubernetes/trial/plain.yaml");
    let [set, patch] = [&set, &patch].map(|object| &object["spec"]["template"]["spec"]);
    let [all, changed] = [set, patch].map(|pod| &pod["containers"][0]);
    for (all, changed, name) in [
        (&all["env"], &changed["env"], "name"),
        (&all["volumeMounts"], &changed["volumeMounts"], "mountPath"),
        (&set["volumes"], &patch["volumes"], "name"),
    ] {
        let known = strings(all, name);
        let gone = changed.as_array().unwrap().iter().filter(|item| item["$patch"] == "delete");
        let gone: Vec<_> = gone.map(|item| item[name].as_str().unwrap()).collect();
        assert!(!gone.is_empty() && gone.iter().all(|name| known.contains(name)), "{gone:?} of {known:?}");
        assert!(strings(changed, name).iter().all(|name| !name.contains("TLS") || gone.contains(name)));
    }
    for (overlay, resources) in [("cert-manager", 3), ("cert-manager-csi", 2), ("trial", 1)] {
        let kustomization = object(&format!("kubernetes/{overlay}/kustomization.yaml"));
        let named = kustomization["resources"].as_array().unwrap();
        assert_eq!(named.len(), resources);
        for name in named {
            let path = file("kubernetes").join(overlay).join(name.as_str().unwrap());
            assert!(path.exists(), "there is no {}", path.display());
        }
    }
    // A pod comes back under ids in reserve, and its certificate has the names of all of them.
    for (id, certificate) in (1..).zip(documents("kubernetes/cert-manager/certificates.yaml")) {
        let spec = &certificate["spec"];
        assert_eq!(spec["secretName"], format!("quorate-node-{id}"));
        let names: Vec<_> = spec["dnsNames"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let of_ids = std::iter::once(id).chain((1..=9).map(|spare| 100 * id + spare));
        let wanted: Vec<_> = of_ids.map(|id| format!("node-{id}.quorate")).collect();
        assert!(wanted.iter().all(|name| names.contains(&name.as_str())), "{names:?}");
        assert!(names.contains(&&*format!("node-{id}.quorate-peers")), "{names:?}");
    }
}

#[test]
fn the_nodes_of_the_compose_file_have_settings_that_are_accepted() {
    let compose = object("compose.yaml");
    // A merge key is of YAML 1.1; parsers of 1.2 may show it as it stands.
    let settings = compose["x-settings"].as_object().unwrap();
    let services = compose["services"].as_object().unwrap();
    assert_eq!(services.len(), 3);
    for (id, (name, service)) in (1..).zip(services) {
        assert_eq!(*name, format!("node{id}"));
        let own = service["environment"].as_object().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_quorate-node"));
        command.args(["config", "check"]).env_clear();
        for (variable, value) in settings.iter().chain(own).filter(|(variable, _)| *variable != "<<") {
            command.env(variable, value.as_str().unwrap_or_else(|| panic!("{variable} is no text")));
        }
        let checked = command.output().unwrap();
        let said = String::from_utf8_lossy(&checked.stdout).into_owned() + &String::from_utf8_lossy(&checked.stderr);
        let port = 7100 + id;
        let expected = format!("at 0.0.0.0:{port} and be told to them as 127.0.0.1:{port}");
        assert!(checked.status.success() && said.contains(&expected), "{name}: {said}");
        let published = format!("127.0.0.1:{port}:{port}");
        assert_eq!(service["ports"], serde_json::json!([published]), "from this machine alone");
    }
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
    let no_room = quorate_node::EXIT_NO_ROOM.to_string();
    assert!(forbidden[0].split(' ').all(|code| code != no_room), "a full disk has room again some time");
    assert!(unit.lines().any(|line| line == "Restart=on-failure"));
    // systemd asks only the main process for its exit code.
    assert!(!unit.contains("\nExecStartPre="), "what it finds wrong would be tried again and again");
}

#[test]
fn the_unit_has_a_directory_for_logs_and_leaves_no_memory_in_files() {
    let unit = text("quorate-node.service");
    for line in ["LogsDirectory=quorate", "LogsDirectoryMode=0700", "StateDirectoryMode=0700", "LimitCORE=0"] {
        assert!(unit.lines().any(|found| found == line), "{line} is missing");
    }
    let reload =
        unit.lines().find(|line| line.starts_with("ExecReload=")).expect("it can be told that a log was moved");
    assert!(reload.contains("kill -HUP $MAINPID"), "{reload}");
}

#[test]
fn the_unit_lets_a_node_step_back_with_what_has_time() {
    let unit = text("quorate-node.service");
    let filters: Vec<_> = unit.lines().filter_map(|line| line.strip_prefix("SystemCallFilter=")).collect();
    let last = filters.last().expect("the unit filters calls");
    assert!(last.split(' ').any(|call| call == "setpriority"), "@resources has it, and later lists count: {filters:?}");
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

/// One built from source, one of a package.
const IMAGES: [&str; 2] = ["Dockerfile", "Dockerfile.packaged"];

#[test]
fn the_images_run_as_nobody_special_and_say_when_they_are_well() {
    for name in IMAGES {
        let image = text(name);
        let instructions: Vec<_> = image.lines().filter_map(|line| line.split_whitespace().next()).collect();
        let stages = instructions.iter().filter(|word| **word == "FROM").count();
        assert_eq!(stages, 2, "{name}: made in one stage, run in another");
        for needed in ["USER", "HEALTHCHECK", "VOLUME", "ENTRYPOINT", "STOPSIGNAL"] {
            assert!(instructions.contains(&needed), "{name}: {needed} is missing");
        }
        assert!(
            image.lines().any(|line| line.starts_with("USER 1")),
            "{name}: a number, so that Kubernetes can see it is not root"
        );
    }
    for name in IMAGES {
        let image = text(name);
        let (_, check) = image.split_once("\nHEALTHCHECK ").expect("it has one");
        let command = check.lines().find_map(|line| line.trim().strip_prefix("CMD ")).expect("a command");
        let words: Vec<String> = serde_json::from_str(command).expect("a list of words");
        // One that is alive and has no leader is not to be started anew, nor one in quarantine.
        assert!(words.starts_with(&["quorate".into(), "wait-ready".into()]), "{name}: {words:?}");
        assert!(words.contains(&"--live".into()), "{name}: {words:?}");
    }
    let end = |name| text(name).split_once("\nUSER ").expect("it has a user").1.to_owned();
    assert_eq!(end(IMAGES[0]), end(IMAGES[1]), "whichever way an image is made, it runs alike");
}
