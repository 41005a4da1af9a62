//! The configuration as an operator meets it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use clap::Parser;
use proptest::prelude::*;

use super::*;

fn parse(arguments: &[&str]) -> Result<Config, ConfigError> {
    let arguments = std::iter::once("quorate-node").chain(arguments.iter().copied());
    Config::try_from(Args::try_parse_from(arguments).expect("the arguments themselves are well formed"))
}

const GOOD: [&str; 6] =
    ["--node-id", "1", "--data-dir", "/d", "--join", "1=127.0.0.1:7201,2=127.0.0.1:7202,3=127.0.0.1:7203"];

fn with(more: &[&str]) -> Result<Config, ConfigError> {
    parse(&[&GOOD[..], more].concat())
}

/// That a configuration is refused, and that of all faults one is of this field and has these words.
fn assert_named(arguments: &[&str], config: Result<Config, ConfigError>, field: &str, remedy: &str) {
    let error = config.expect_err(&format!("{arguments:?}"));
    let ConfigError::Faults(faults) = &error else { panic!("{arguments:?}: {error}") };
    let named = faults.iter().any(|fault| fault.field == field && fault.detail.contains(remedy));
    assert!(named, "{arguments:?} should say `{remedy}` of {field}, and says {error}");
}

/// The same of one that is good but for these arguments, by all these words.
fn assert_refused(more: &[&str], words: &[&str]) {
    let error = with(more).expect_err(&format!("{more:?}")).to_string();
    assert!(words.iter().all(|words| error.contains(*words)), "{more:?} should say {words:?}, and says {error}");
}

#[test]
fn the_defaults_are_those_of_the_help() {
    let config = with(&[]).expect("good");
    assert_eq!(config.client_listen.to_string(), "127.0.0.1:7100");
    assert_eq!(config.client_advertise, "127.0.0.1:7100");
    assert_eq!(config.peer_listen.to_string(), "127.0.0.1:7200");
    assert_eq!(config.peer_advertise, "127.0.0.1:7201", "the address that the others use");
    assert_eq!(config.join.len(), 3);
    assert_eq!(config.heartbeat, Duration::from_millis(40));
    assert_eq!((config.election_min, config.election_max), (Duration::from_millis(280), Duration::from_millis(400)));
    assert_eq!(config.body_bytes_max, limits::BODY_BYTES_MAX_DEFAULT);
    let help = <Args as clap::CommandFactory>::command().render_long_help().to_string();
    // The help is wrapped to the width of a terminal.
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for default in ["127.0.0.1:7100", "2162688", "900000", "4096", "67108864", "268435456", "100000", "20000"] {
        assert!(help.contains(&format!("[default: {default}")), "{default} is not in\n{help}");
    }
}

#[test]
fn openraft_is_heard_of_only_where_something_is_wrong() {
    let usual = with(&[]).expect("good").log_filter;
    for (target, level, is_told) in [
        ("quorate_node_replica::app", tracing::Level::INFO, true),
        ("openraft::core::raft_core", tracing::Level::INFO, false),
        ("openraft::core::raft_core", tracing::Level::WARN, true),
        ("openraft::core::heartbeat::worker", tracing::Level::WARN, false),
    ] {
        assert_eq!(usual.would_enable(target, &level), is_told, "{target} at {level}");
    }
}

#[test]
fn spans_go_to_the_usual_path_of_a_collector_unless_another_is_named() {
    for (given, whole) in [
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
        ("http://collector:4318/", "http://collector:4318/v1/traces"),
        ("http://collector:80/otlp/v1/traces", "http://collector:80/otlp/v1/traces"),
    ] {
        let config = with(&["--otlp-endpoint", given, "--slow-request-ms", "0"]).expect("good");
        assert_eq!((config.otlp_endpoint.as_deref(), config.slow_request), (Some(whole), Duration::ZERO));
    }
    let config = with(&["--feature-level-max", "4000000000"]).expect("good");
    assert_eq!(config.feature_level_max, quorate_machine::level::KNOWN, "nobody agrees to what it does not know");
    let config = with(&["--feature-level-max", "0"]).expect("good");
    assert_eq!(config.feature_level_max, quorate_machine::level::FIRST, "every cluster is at the first");
}

#[test]
fn a_node_that_joins_later_says_where_it_is_and_may_be_a_standby() {
    let later = ["--node-id", "4", "--data-dir", "/d", "--join", "1=a:1,2=b:1", "--peer-advertise", "d:1"];
    let config = parse(&later).expect("good");
    assert_eq!((config.join.len(), config.peer_advertise.as_str(), config.standby), (2, "d:1", false));
    assert_eq!(config.replace_dead_after, None, "nothing is replaced unless it is asked for");
    let config = parse(&[&later[..], &["--standby", "--replace-dead-after-ms", "60000"]].concat()).expect("good");
    assert_eq!((config.standby, config.replace_dead_after), (true, Some(Duration::from_secs(60))));
    assert_refused(&["--replace-dead-after-ms", "10"], &["replace_dead_after_ms"]);
}

#[test]
fn a_throw_away_node_needs_nothing_else() {
    let config = parse(&["--dev"]).expect("good");
    assert_eq!((config.node_id, &config.data_dir, config.dev), (1, &DataDir::Temporary, true));
    assert_eq!(config.client_listen.to_string(), DEV_CLIENT_LISTEN);
    assert_eq!(config.join.get(&1).map(String::as_str), Some("127.0.0.1:7201"));
    let opened = config.data_dir.open().expect("a temporary directory");
    let path = opened.path().to_owned();
    assert!(path.is_dir());
    drop(opened);
    assert!(!path.exists(), "removed at exit");
}

#[test]
fn each_bad_setting_is_named_with_a_remedy() {
    let long: &str = &format!("/{}", "s".repeat(107));
    let rows: &[(&[&str], &str, &str)] = &[
        (&["--data-dir", "/d", "--join", "1=a:1"], "node_id", "say --node-id"),
        (&["--node-id", "0", "--data-dir", "/d", "--join", "1=a:1"], "node_id", "from 1"),
        (&["--node-id", "1", "--join", "1=a:1"], "data_dir", "say --data-dir"),
        (&["--node-id", "1", "--data-dir", "/d"], "join", "say --join"),
        (&["--node-id", "4", "--data-dir", "/d", "--join", "1=a:1"], "join", "add 4=HOST:PORT"),
        (&["--node-id", "4", "--data-dir", "/d", "--join", "1=a:1"], "join", "say --peer-advertise"),
        (&["--node-id", "1", "--data-dir", "/d", "--join", "1=a:1", "--standby"], "standby", "take node 1 out of it"),
        (&["--node-id", "1", "--data-dir", "/d", "--join", "1=a:1,1=b:1"], "join", "listed twice"),
        (&["--node-id", "1", "--data-dir", "/d", "--join", "1=a:1,2=a:1"], "join", "the same address"),
        (&["--node-id", "1", "--data-dir", "/d", "--join", "1=a:1,b:2"], "join", "ID=HOST:PORT"),
        (&["--node-id", "1", "--data-dir", "/d", "--join", "1=a:1,x=b:2"], "join", "not a node id"),
        (&["--node-id", "1", "--data-dir", "/d", "--join", "1=a:1,2=0.0.0.0:2"], "join", "wildcard"),
        (&["--node-id", "1", "--data-dir", "/d", "--join", "1=a:1,2=b"], "join", "no port"),
        (
            &["--node-id", "1", "--data-dir", "/d", "--join", "1=a:1", "--peer-advertise", "b:1"],
            "peer_advertise",
            "leave one",
        ),
        (&["--dev", "--data-dir", "/d"], "data_dir", "leave out either"),
        (&["--dev", "--join", "1=a:1"], "join", "leave out either"),
        (&["--dev", "--otlp-endpoint", "https://collector"], "otlp_endpoint", "begin with http://"),
        (&["--dev", "--otlp-endpoint", "http://collector"], "otlp_endpoint", "http://127.0.0.1:4318"),
        (&["--dev", "--trace-percent", "101"], "trace_percent", "from 0 to 100"),
        (&["--dev", "--client-listen", "localhost"], "client_listen", "127.0.0.1:7101"),
        (&["--dev", "--client-listen", "0.0.0.0:7100", "--client-advertise", "h:1"], "client_listen", "--insecure"),
        (&["--dev", "--peer-listen", "10.0.0.1:7200"], "peer_listen", "--insecure"),
        (&["--dev", "--insecure", "--client-listen", "0.0.0.0:7100"], "client_advertise", "wildcard"),
        (&["--dev", "--client-listen", "127.0.0.1:0"], "client_advertise", "port 0"),
        (&["--dev", "--client-advertise", "[::]:1"], "client_advertise", "wildcard"),
        (&["--dev", "--client-advertise", "::1:1"], "client_advertise", "brackets"),
        (&["--dev", "--heartbeat-ms", "100"], "election_min_ms", "at least 300"),
        (&["--dev", "--heartbeat-ms", "0"], "heartbeat_ms", "from 5"),
        (&["--dev", "--election-max-ms", "250"], "election_max_ms", "raise it"),
        (&["--dev", "--request-timeout-ms", "70000"], "request_timeout_ms", "raise the maximum"),
        (&["--dev", "--body-bytes-max", "1"], "body_bytes_max", "from 1024"),
        (&["--dev", "--connections-max", "0"], "connections_max", "from 1"),
        (&["--dev", "--snapshot-every-entries", "0"], "snapshot_every_entries", "from 1"),
        (&["--dev", "--client-socket-mode", "600"], "client_socket_mode", "--client-socket PATH"),
        (&["--dev", "--client-socket", "/s", "--client-socket-mode", "rw"], "client_socket_mode", "in octal"),
        (&["--dev", "--client-socket", "/s", "--client-socket-mode", "1777"], "client_socket_mode", "in octal"),
        (&["--dev", "--client-socket", long], "client_socket", "1 to 107 bytes"),
        (&["--dev", "--log", "a=b=c"], "log", "write it like"),
    ];
    for (arguments, field, remedy) in rows {
        assert_named(arguments, parse(arguments), field, remedy);
    }
}

#[test]
fn all_faults_are_told_at_once() {
    let error = parse(&["--heartbeat-ms", "0", "--client-listen", "x"]).expect_err("five faults").to_string();
    for field in ["node_id", "data_dir", "join", "heartbeat_ms", "client_listen"] {
        assert!(error.contains(&format!("\n  {field}: ")), "{field} is missing in {error}");
    }
}

#[test]
fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("node.toml");
    let text = "node_id = 2\ndata_dir = \"/from/file\"\njoin = \"2=h:1\"\nheartbeat_ms = 70\ninsecure = true\n\
                client_listen = \"0.0.0.0:7100\"\nclient_advertise = \"h:7100\"\nlog_format = \"json\"\n";
    std::fs::write(&path, text).expect("written");
    let path = path.to_str().expect("UTF-8");
    let config = parse(&["--config", path, "--heartbeat-ms", "80"]).expect("good");
    assert_eq!((config.node_id, config.heartbeat), (2, Duration::from_millis(80)));
    assert_eq!(config.data_dir, DataDir::Given("/from/file".into()));
    assert_eq!(config.log_format, LogFormat::Json);
    let refused = parse(&["--config", path, "--insecure=false"]).expect_err("beyond loopback");
    assert!(refused.to_string().contains("client_listen"), "{refused}");
}

#[test]
fn an_unknown_or_unreadable_file_setting_is_refused_by_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("node.toml");
    for (text, named) in
        [("hartbeat_ms = 1\n", "hartbeat_ms"), ("node_id = \"one\"\n", "node_id"), ("node_id 1", "node_id 1")]
    {
        std::fs::write(&path, text).expect("written");
        let error = parse(&["--config", path.to_str().expect("UTF-8")]).expect_err(text).to_string();
        assert!(error.contains(named) && error.contains("node.toml"), "{error}");
    }
    let error = parse(&["--config", "/no/such/file.toml"]).expect_err("missing").to_string();
    assert!(error.contains("/no/such/file.toml"), "{error}");
}

/// The certificates of node 1, and the settings of both ports that name them.
fn certificates(dir: &std::path::Path) -> Vec<String> {
    use quorate_node_core::tls::{Authority, Issued, Lifetime, Subject};
    let authority = Authority::create(dir, Lifetime::days(1)).expect("a CA");
    let node = Subject::Node { id: 1, hosts: vec!["localhost".into()] };
    let Issued { cert, key } = authority.issue(&node, Lifetime::days(1)).expect("a certificate");
    let ca = authority.cert();
    let settings = [
        ("--tls-cert", &cert),
        ("--tls-key", &key),
        ("--peer-tls-cert", &cert),
        ("--peer-tls-key", &key),
        ("--peer-tls-ca", &ca),
    ];
    settings.into_iter().flat_map(|(flag, path)| [flag.to_owned(), path.display().to_string()]).collect()
}

#[test]
fn origins_of_web_pages_are_as_a_browser_sends_them() {
    let config =
        with(&["--cors-origins", "https://app.example.org, http://localhost:3000,http://[::1]:80"]).expect("good");
    assert_eq!(config.cors_origins, ["https://app.example.org", "http://localhost:3000", "http://[::1]:80"]);
    assert_eq!(with(&[]).expect("good").cors_origins, [""; 0]);
    assert_eq!(with(&["--cors-origins", "*"]).expect("good").cors_origins, ["*"]);
    for bad in
        ["app.example.org", "https://app.example.org/", "https://App.example.org", "ftp://a", "https://", "https://*.a"]
    {
        assert_refused(&["--cors-origins", bad], &["cors_origins: ", bad]);
    }
}

#[test]
fn a_node_that_asks_nobody_who_they_are_knows_its_names() {
    let own = ["--client-advertise", "node-1.example.org:7100"];
    let config = with(&own).expect("good");
    assert_eq!(config.hosts, AllowedHosts::of(["node-1.example.org".into(), "127.0.0.1".into()]));
    let more = with(&[&own[..], &["--allowed-hosts", "a.example, *.b.example"]].concat()).expect("good");
    let names = ["a.example", "*.b.example", "node-1.example.org", "127.0.0.1"].map(str::to_owned);
    assert_eq!(more.hosts, AllowedHosts::of(names));
    assert_eq!(with(&["--allowed-hosts", "*"]).expect("good").hosts, AllowedHosts::ALL);
    for bad in ["http://a.example", "a.example:7100", "a/b", ".a", "a b"] {
        assert_refused(&["--allowed-hosts", bad], &["allowed_hosts: "]);
    }
}

/// As its owner would.
fn write_secret(path: &Path, text: &str) {
    fs::write(path, text).expect("it can be written");
    fs::set_permissions(path, Permissions::from_mode(0o600)).expect("it is ours");
}

#[test]
fn beyond_loopback_it_takes_tls_and_authentication() {
    let directory = tempfile::tempdir().expect("a directory");
    let tls = certificates(directory.path());
    let tls: Vec<_> = tls.iter().map(String::as_str).collect();
    let beyond = ["--client-listen", "0.0.0.0:7100", "--client-advertise", "h:1", "--peer-listen", "0.0.0.0:7200"];
    let root = directory.path().join("root.token").display().to_string();
    write_secret(root.as_ref(), "0123456789abcdef0123456789abcdef");
    let auth = ["--auth", "required", "--root-token-file", &root];
    let config = with(&[&beyond[..], &tls, &auth].concat()).expect("all that it takes");
    assert!(config.tls.is_some() && config.peer_tls.is_some() && config.auth == Auth::Required && !config.insecure);
    let told = |more: &[&str]| with(&[&beyond[..], more].concat()).expect_err("open to all").to_string();
    let error = told(&tls);
    assert!(error.contains("client_listen: ") && error.contains("--auth required"), "{error}");
    assert!(!error.contains("--tls-cert") && !error.contains("peer_listen"), "only what is missing: {error}");
    let error = told(&auth);
    assert!(error.contains("client_listen: ") && error.contains("--tls-cert FILE"), "{error}");
    assert!(error.contains("peer_listen: ") && error.contains("--peer-tls-ca FILE"), "{error}");
    assert!(with(&[&beyond[..], &["--insecure"]].concat()).is_ok(), "who insists");
    let mapped = ["--client-listen", "[::ffff:127.0.0.1]:7100"];
    assert!(with(&mapped).is_ok(), "loopback by another name");
    // On loopback nothing is asked for, and what is there is used.
    assert!(with(&tls).expect("good").tls.is_some());
}

#[test]
fn files_of_tls_that_do_not_fit_are_refused_with_what_to_do() {
    let directory = tempfile::tempdir().expect("a directory");
    let tls = certificates(directory.path());
    let [cert, key, ca] =
        ["node-1.crt", "node-1.key", "ca.crt"].map(|file| directory.path().join(file).display().to_string());
    let ca_key = directory.path().join("ca.key").display().to_string();
    let noise = directory.path().join("noise").display().to_string();
    std::fs::write(&noise, "-----BEGIN CERTIFICATE-----\n????\n-----END CERTIFICATE-----\n").expect("written");
    let empty = directory.path().join("empty").display().to_string();
    std::fs::write(&empty, "").expect("written");
    let open_key = directory.path().join("open.key").display().to_string();
    std::fs::copy(&key, &open_key).expect("copied");
    std::fs::set_permissions(&open_key, std::os::unix::fs::PermissionsExt::from_mode(0o644)).expect("it is ours");
    let rows: &[(&[&str], &str, &str)] = &[
        (&["--tls-cert", &cert, "--tls-key", &open_key], "tls_key", "has the mode 644"),
        (&["--tls-cert", &cert], "tls_key", "--tls-key FILE"),
        (&["--tls-key", &key], "tls_cert", "--tls-cert FILE"),
        (&["--tls-client-ca", &ca], "tls_cert", "though tls_client_ca is there"),
        (&["--peer-tls-cert", &cert, "--peer-tls-key", &key], "peer_tls_ca", "--peer-tls-ca FILE"),
        (&["--tls-cert", "/no/such/file", "--tls-key", &key], "tls_cert", "cannot be read"),
        (&["--tls-cert", &cert, "--tls-key", "/no/such/file"], "tls_key", "cannot be read"),
        (&["--tls-cert", &cert, "--tls-key", &ca_key], "tls_key", "is not the key of the certificate"),
        (&["--tls-cert", &cert, "--tls-key", &cert], "tls_key", "no private key"),
        (&["--tls-cert", &key, "--tls-key", &key], "tls_cert", "no certificate in it"),
        (&["--tls-cert", &empty, "--tls-key", &key], "tls_cert", "no certificate in it"),
        (&["--tls-cert", &noise, "--tls-key", &key], "tls_cert", "is not PEM"),
        (&["--tls-cert", &cert, "--tls-key", &key, "--tls-client-ca", &empty], "tls_client_ca", "no certificate in it"),
        (
            &["--peer-tls-cert", &ca, "--peer-tls-key", &ca_key, "--peer-tls-ca", &ca],
            "peer_tls_cert",
            "pki node DIR --id 1",
        ),
    ];
    for (arguments, field, remedy) in rows {
        assert_named(arguments, with(arguments), field, remedy);
    }
    // Nothing of a key is in what a person may see of a configuration.
    let config = with(&tls.iter().map(String::as_str).collect::<Vec<_>>()).expect("good");
    let secret = std::fs::read_to_string(&key).expect("it is there");
    let line = secret.lines().nth(1).expect("base64");
    assert!(!format!("{config:?}").contains(line));
}

#[test]
fn names_that_a_person_may_choose_are_none_of_the_cluster_unless_that_is_said() {
    let dir = tempfile::tempdir().expect("a directory");
    let (root, keys) = (dir.path().join("root"), dir.path().join("jwks.json"));
    write_secret(&root, "6d1f0a8be2c94735a17c0e5b8f42d963");
    let key = r#"{"kty":"OKP","crv":"Ed25519","kid":"k1","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
    fs::write(&keys, format!(r#"{{"keys":[{key}]}}"#)).expect("written");
    let (root, keys) = (root.to_str().expect("UTF-8"), keys.to_str().expect("UTF-8"));
    let believed = ["--auth", "required", "--root-token-file", root, "--jwt-issuer", "https://id.test"];
    let believed = [&believed[..], &["--jwt-audience", "quorate", "--jwt-jwks", keys]].concat();
    let email = ["--jwt-user-claim", "email"];
    let rows: [(&[&str], &str); 5] = [
        (&[], ""),
        (&["--jwt-user-claim", "sub"], ""),
        (&email, "oidc:"),
        (&[email[0], email[1], "--jwt-user-prefix", "mail:"], "mail:"),
        (&[email[0], email[1], "--jwt-user-prefix", ""], ""),
    ];
    for (more, prefix) in rows {
        let config = with(&[&believed[..], more].concat()).expect("good");
        assert_eq!(config.jwt.expect("tokens are believed").user_prefix, prefix, "{more:?}");
    }
}

#[test]
fn an_archive_has_a_place_and_its_settings_have_an_archive() {
    let config = with(&["--archive", "s3://backups/prod"]).expect("good");
    let archive = config.archive.expect("it is named");
    assert_eq!(archive.location.to_string(), "s3://backups/prod");
    assert_eq!((archive.interval, archive.base_every), (Duration::from_secs(5), Duration::from_secs(86_400)));
    assert_eq!((archive.retention.keep_ms, archive.retention.bases_min), (7 * 86_400_000, 2));
    assert!(archive.recipients.is_none() && archive.can_read() && archive.verify_every.is_some());
    assert_eq!(with(&[]).expect("good").archive, None);
    assert_eq!(archive.merging.map(|merging| merging.span_ms), Some(3_600_000));
    let never = with(&["--archive", "d", "--archive-merge-ms", "0"]).expect("good").archive.expect("it is named");
    assert_eq!(never.merging, None);
    assert_refused(&["--archive", "d", "--archive-merge-ms", "9"], &["archive_merge_ms: 9 is out of range"]);
    for flag in ["--archive-interval-ms", "--archive-keep-ms", "--archive-verify-every-ms", "--archive-merge-ms"] {
        assert_refused(&[flag, "1000"], &["say --archive LOCATION too"]);
    }
    for (given, words) in [
        (["--archive", "ftp://host/dir"], "s3://BUCKET/PREFIX"),
        (["--archive", "s3://AKIA:hunter2@bucket"], "credentials come from the environment"),
    ] {
        let error = with(&given).expect_err("bad").to_string();
        assert!(error.contains(words) && !error.contains("hunter2"), "{error}");
    }
    assert_refused(&["--archive", "d", "--archive-interval-ms", "1"], &["archive_interval_ms: 1 is out of range"]);
}

#[test]
fn an_archive_that_a_node_cannot_read_is_not_tried() {
    let recipient = "age1pv9n30e62nv8dk6damd4lev7yquy3lhcpq5h7v49xccgjr2csqgqca29hk";
    let config = with(&["--archive", "d", "--archive-recipients", recipient]).expect("good");
    let archive = config.archive.expect("it is named");
    assert!(!archive.can_read() && archive.to_string().ends_with("no restore is tried, since this node has no key"));
    assert_refused(&["--archive", "d", "--archive-recipients", "age1wrong"], &["archive_recipients", "age1wrong"]);
    let dir = tempfile::tempdir().unwrap();
    let (key, missing) = (dir.path().join("key"), dir.path().join("missing"));
    let secret = "AGE-SECRET-KEY-1JT7NZVH8Y6KAFPF83VEH3NS8YUQ3XJ99RE7XU4XVLA6W6SVJY4USPC9P7U";
    write_secret(&key, &format!("{secret}\n"));
    let config = with(&["--archive", "d", "--archive-key", key.to_str().unwrap()]).expect("good");
    let archive = config.archive.expect("it is named");
    assert_eq!(archive.recipients.names().collect::<Vec<_>>(), [recipient], "it is for its own key");
    assert!(archive.can_read() && !format!("{archive:?}").contains(secret));
    assert_refused(&["--archive", "d", "--archive-key", missing.to_str().unwrap()], &["archive_key", "missing"]);
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    assert_refused(&["--archive", "d", "--archive-key", key.to_str().unwrap()], &["archive_key: ", "has the mode 644"]);
}

#[test]
fn backups_of_a_directory_are_encrypted_and_authenticated_where_it_is_asked_for() {
    let recipient = "age1pv9n30e62nv8dk6damd4lev7yquy3lhcpq5h7v49xccgjr2csqgqca29hk";
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mac");
    write_secret(&path, &"0123456789abcdef".repeat(4));
    let file = path.to_str().unwrap();
    let given = ["--backup-dir", "b", "--backup-recipients", recipient, "--backup-mac-key", file];
    let backups = with(&given).expect("good").backups.expect("a directory is named");
    assert!(backups.to_string().ends_with(&format!(", encrypted for {recipient}, authenticated")), "{backups}");
    let backups = with(&["--backup-dir", "b"]).expect("good").backups.expect("a directory is named");
    assert!(backups.to_string().ends_with("the last 7 kept, not encrypted") && backups.macs.is_none(), "{backups}");
    for given in [["--backup-recipients", recipient], ["--backup-mac-key", file]] {
        assert_refused(&given, &["say --backup-dir DIR too"]);
    }
    assert_refused(&["--backup-dir", "b", "--backup-recipients", "age1wrong"], &["backup_recipients", "age1wrong"]);
}

#[test]
fn an_archive_is_authenticated_by_the_secret_of_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mac");
    let (secret, file) = ("s3cret".repeat(8), path.to_str().unwrap());
    write_secret(&path, &format!("# of all nodes\n{secret}\n"));
    let archive = with(&["--archive", "d", "--archive-mac-key", file]).expect("good").archive.expect("it is named");
    assert!(!archive.macs.is_none() && archive.to_string().contains(", authenticated"), "{archive}");
    assert!(!format!("{archive:?}").contains(&secret));
    let archive = with(&["--archive", "d"]).expect("good").archive.expect("it is named");
    assert!(archive.macs.is_none() && !archive.to_string().contains("authenticated"), "{archive}");
    assert_refused(&["--archive-mac-key", file], &["archive_mac_key: nothing is archived without a place"]);
    write_secret(&path, "short\n");
    assert_refused(&["--archive", "d", "--archive-mac-key", file], &["archive_mac_key", "line 1 has 5 characters"]);
}

#[test]
fn one_address_may_have_a_quarter_of_the_connections_unless_it_is_told_otherwise() {
    for (given, all, of_one) in [
        (&[][..], 4_096, 1_024),
        (&["--connections-max", "1001"], 1_001, 251),
        (&["--connections-max", "1"], 1, 1),
        (&["--connections-max", "1000", "--account-connections-max", "900"], 1_000, 900),
        (&["--account-connections-max", "0"], 4_096, 0),
    ] {
        let config = with(given).expect("good");
        assert_eq!((config.connections_max, config.accounts.connections_max), (all, of_one), "{given:?}");
    }
}

#[test]
fn spare_ids_are_for_this_place_alone_and_stand_in_its_certificate() {
    let config = with(&["--spare-node-ids", "101, 102"]).expect("good");
    assert_eq!((config.node_id, config.spare_node_ids), (1, vec![101, 102]));
    for (list, remedy) in
        [("2", "the id of a node already"), ("1", "already"), ("7,7", "twice"), ("0", "from 1"), ("x", "from 1")]
    {
        assert_refused(&["--spare-node-ids", list], &["spare_node_ids: ", remedy]);
    }
    let directory = tempfile::tempdir().expect("a directory");
    let tls = certificates(directory.path());
    let tls: Vec<_> = tls.iter().map(String::as_str).collect();
    assert_refused(&[&tls[..], &["--spare-node-ids", "101"]].concat(), &["peer_tls_cert: ", "node-101.quorate"]);
}

#[test]
fn a_directory_of_a_cluster_keeps_its_spare_id_and_another_begins_anew() {
    let root = tempfile::tempdir().expect("a directory");
    let dir = root.path().display().to_string();
    let given = ["--node-id", "1", "--join", "1=127.0.0.1:7201", "--spare-node-ids", "101,102", "--data-dir", &dir];
    let config = || parse(&given).expect("good");
    assert_eq!(config().of_directory(false).expect("empty").node_id, 1);
    identity::open(root.path(), 1, 7).expect("made");
    identity::renumber(root.path(), Some(101), 8).expect("of no cluster");
    let goes_on = config().of_directory(true).expect("readable");
    assert_eq!((goes_on.node_id, goes_on.spare_node_ids, goes_on.is_spare), (101, vec![102], true));
    assert_eq!(config().of_directory(false).expect("readable").node_id, 1, "whoever refused it may be mended since");
    let marker = identity::open(root.path(), 1, 9).expect("of the first id again");
    identity::renumber(root.path(), Some(102), marker.incarnation).expect("of no cluster");
    let marker = identity::open(root.path(), 102, 9).expect("its own");
    identity::adopt(root.path(), &marker, 5).expect("adopted");
    let kept = config().of_directory(false).expect("readable");
    assert_eq!((kept.node_id, kept.spare_node_ids), (102, vec![]));
}

/// Settings that the configuration takes, the extremes among them.
fn timings() -> impl Strategy<Value = [u64; 3]> {
    let heartbeat = prop_oneof![Just(5), Just(40), 5..200_u64, 5..=60_000_u64];
    let shortest = |heartbeat: u64| {
        let any = prop_oneof![Just(3 * heartbeat), 3 * heartbeat..=10 * heartbeat, 3 * heartbeat..600_000];
        any.prop_map(|shortest| shortest.min(599_999))
    };
    let longest = |shortest: u64| prop_oneof![Just(shortest + 1), shortest + 1..=2 * shortest, shortest + 1..=600_000];
    let two = heartbeat.prop_flat_map(move |heartbeat| (Just(heartbeat), shortest(heartbeat)));
    let three = two.prop_flat_map(move |(heartbeat, shortest)| (Just(heartbeat), Just(shortest), longest(shortest)));
    three.prop_map(|(heartbeat, shortest, longest)| [heartbeat, shortest, longest.min(600_000)])
}

proptest! {
    #[test]
    fn no_answer_is_waited_for_longer_than_a_lease(numbers in timings()) {
        let [beat, min, max] = numbers.map(|ms| ms.to_string());
        let config = with(&["--heartbeat-ms", &beat, "--election-min-ms", &min, "--election-max-ms", &max]);
        let config = config.map_err(|error| TestCaseError::fail(error.to_string()))?;
        let deadline = config.peer_timings().append_deadline();
        prop_assert!(deadline < config.lease(), "{deadline:?} of {:?}", config.lease());
        prop_assert!(deadline > config.heartbeat, "{deadline:?}: each heartbeat is another try");
    }
}

#[test]
fn a_lease_and_the_wait_after_it_are_a_silence_of_the_time_that_was_set() {
    for (heartbeat, shortest, longest) in
        [(40, 280, 400), (60, 250, 400), (5, 15, 16), (100, 300, 301), (100, 300, 60_000), (40, 500, 1_000)]
    {
        let numbers = [heartbeat, shortest, longest].map(|ms: u64| ms.to_string());
        let [beat, min, max] = &numbers;
        let config = with(&["--heartbeat-ms", beat, "--election-min-ms", min, "--election-max-ms", max]).expect("good");
        let (lease, least_wait) = (config.lease(), config.election_min - config.lease());
        assert!(config.heartbeat < least_wait && least_wait < lease, "{numbers:?}: {lease:?}, {least_wait:?}");
        assert!(2 * lease <= config.election_max, "{numbers:?}: {lease:?}");
        assert!(crate::raft_config::build(&config, false).is_ok(), "{numbers:?}");
    }
    let config = with(&[]).expect("good");
    assert_eq!(config.lease(), Duration::from_millis(200));
}
