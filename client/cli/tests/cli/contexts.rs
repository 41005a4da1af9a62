//! Contexts: which of several clusters a command goes to, and as whom.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use tokio::process::Command;

use crate::fake::Fake;

/// Runs `quorate` with a configuration of its own.
async fn quorate(home: &Path, variables: &[(&str, &str)], arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
    command.args(arguments).env("XDG_CONFIG_HOME", home).envs(variables.iter().copied()).kill_on_drop(true);
    command.output().await.expect("the binary runs")
}

async fn works(home: &Path, variables: &[(&str, &str)], arguments: &[&str]) -> String {
    let output = quorate(home, variables, arguments).await;
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[tokio::test]
async fn a_flag_counts_more_than_the_environment_and_that_more_than_a_context() {
    let (shop, other) = (Fake::start().await, Fake::start().await);
    let directory = tempfile::tempdir().expect("a directory");
    let home = directory.path();
    works(home, &[("QUORATE_TOKEN", "s3cret")], &["context", "set", "shop", "-e", &shop.address, "--keep-token"]).await;
    works(home, &[], &["context", "set", "other", "-e", &other.address, "-o", "json"]).await;
    let file = home.join("quorate/config.toml");
    assert_eq!(std::fs::metadata(&file).expect("is there").permissions().mode() & 0o777, 0o600);
    let listed = works(home, &[], &["context", "list"]).await;
    assert_eq!(listed, format!("  other  {}\n* shop  {}\n", other.address, shop.address));
    let shown = works(home, &[], &["context", "show"]).await;
    assert!(shown.contains("token: (kept)") && !shown.contains("s3cret"), "{shown}");

    works(home, &[], &["delete", "k"]).await;
    assert_eq!(shop.seen()[0].header("authorization"), Some("Bearer s3cret"));
    let json = works(home, &[], &["-c", "other", "delete", "k"]).await;
    assert!(json.starts_with('{'), "{json}");
    works(home, &[("QUORATE_CONTEXT", "other")], &["delete", "k"]).await;
    assert_eq!((shop.seen().len(), other.seen().len()), (1, 2));
    // Who names nodes does not mean those of the context, and shows them none of its secrets.
    works(home, &[("QUORATE_ENDPOINTS", &other.address)], &["delete", "k"]).await;
    assert_eq!(other.seen()[2].header("authorization"), None);
    works(home, &[], &["-e", &other.address, "-c", "shop", "delete", "k"]).await;
    assert_eq!(other.seen()[3].header("authorization"), Some("Bearer s3cret"), "unless both are named");

    assert_eq!(works(home, &[], &["context", "use", "other"]).await, "current: other\n");
    works(home, &[], &["delete", "k"]).await;
    assert_eq!(other.seen().len(), 5);
    works(home, &[], &["context", "delete", "other"]).await;
    let listed = works(home, &[], &["context", "list", "-o", "json"]).await;
    assert!(listed.contains("\"context\":\"shop\",\"current\":false"), "{listed}");
}

#[tokio::test]
async fn what_is_wrong_with_a_context_is_said() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = directory.path();
    works(home, &[("QUORATE_TOKEN", "s3cret")], &["context", "set", "shop", "-e", "n:1", "--keep-token"]).await;
    let refused = async |arguments: &[&str], said: &str| {
        let output = quorate(home, &[], arguments).await;
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && text.contains(said), "{arguments:?}: {output:?}");
    };
    refused(&["-c", "none", "get", "k"], "there is no context `none`").await;
    refused(&["context", "use", "none"], "there is no context `none`").await;
    let file = home.join("quorate/config.toml");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).expect("changed");
    refused(&["get", "k"], "others can read it").await;
    std::fs::write(&file, "[context.shop]\nendpoint = 'n:1'").expect("written");
    refused(&["get", "k"], "unknown field `endpoint`").await;
}
