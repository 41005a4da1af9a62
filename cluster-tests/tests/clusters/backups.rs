//! Backups of a running cluster, and new clusters made of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use cluster_harness::cluster::PATIENCE;
use cluster_harness::fill::fill;
use cluster_harness::load::Load;
use cluster_harness::{Cluster, Request, Settings, eventually, write_secret};
use quorate_client::api::{EntryView, ErrorCode};
use quorate_client::{Client, Value};
use serde_json::json;

use crate::guide::built;

/// Runs a program to its end.
pub async fn run(name: &str, arguments: Vec<String>) -> Output {
    let program = built(name);
    let shown = arguments.join(" ");
    let command = move || Command::new(program).args(arguments).env_remove("QUORATE_ENDPOINTS").output();
    let output = tokio::task::spawn_blocking(command).await.unwrap().unwrap();
    println!("{name} {shown}\n{}", said(&output));
    output
}

/// All that it printed.
pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.clone(), output.stderr.clone()].concat()).into_owned()
}

/// Runs a program that must succeed; gives what it printed.
pub async fn succeed(name: &str, arguments: &[&str]) -> String {
    let output = run(name, arguments.iter().map(|&argument| argument.to_owned()).collect()).await;
    assert!(output.status.success(), "{}", said(&output));
    said(&output)
}

/// Runs a program that must fail with this code and say this.
pub async fn refuse(name: &str, arguments: &[&str], code: i32, words: &str) {
    let output = run(name, arguments.iter().map(|&argument| argument.to_owned()).collect()).await;
    assert_eq!(output.status.code(), Some(code), "{}", said(&output));
    assert!(said(&output).contains(words), "no `{words}` in: {}", said(&output));
}

pub fn endpoints(cluster: &Cluster) -> String {
    let all: Vec<_> = cluster.ids().into_iter().map(|id| cluster.client_address(id).to_string()).collect();
    all.join(",")
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// All entries, as they were at a revision.
async fn entries(client: &Client, revision: Option<u64>) -> BTreeMap<String, EntryView> {
    let list = client.list("").limit(1_000);
    let list = revision.map_or(list.clone(), |revision| list.revision(revision));
    let (mut entries, mut page) = (BTreeMap::new(), list.page().await.unwrap());
    loop {
        entries.extend(page.entries.into_iter().map(|entry| (entry.key.to_string(), entry)));
        match page.cursor {
            Some(cursor) => page = list.page_after(&cursor).await.unwrap(),
            None => return entries,
        }
    }
}

/// What of an entry survives a restore: all but its token.
fn lasting(entry: &EntryView) -> (String, u64, u64, u64) {
    let value = entry.value.as_ref().map(|value| value.0.get().to_owned());
    let value = value.or_else(|| entry.value_base64.clone()).unwrap();
    (value, entry.create_revision, entry.mod_revision, entry.version)
}

/// A cluster of which the first node was restored from a backup.
pub async fn restored(backup: &Path) -> Cluster {
    let mut cluster = Cluster::new(Settings::default());
    let mut arguments: Vec<_> = ["restore", "--from", text(backup)].map(str::to_owned).into();
    arguments.extend(cluster.arguments(1));
    let output = run("quorate-node", arguments.clone()).await;
    assert!(output.status.success(), "{}", said(&output));
    let again = run("quorate-node", arguments).await;
    assert_eq!(again.status.code(), Some(1));
    assert!(said(&again).contains("is not empty"), "{}", said(&again));
    cluster.start_all();
    cluster.wait_all_ready().await;
    cluster
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_under_load_becomes_a_new_cluster_that_fools_no_client_of_the_old_one() {
    let home = tempfile::tempdir().unwrap();
    let old = Cluster::start().await;
    let client = old.client_without(None);
    let first = client.put("config/a", Value::json(&json!({"n": 1})).unwrap()).await.unwrap();
    client.put("config/bytes", Value::bytes([0, 255, 10].as_slice())).await.unwrap();
    for _ in 0..3 {
        client.sequence("orders").next(1).await.unwrap();
    }
    let tasks = client.tasks("mail");
    tasks.schedule(Value::json(&json!({"to": "x"})).unwrap()).id("t1").delay(Duration::from_secs(1)).await.unwrap();
    let session = Request::post("/v1/sessions", r#"{"ttl_ms":60000}"#).send(old.client_address(1)).await.unwrap();
    let session: serde_json::Value = session.expect_success().json();
    let held = format!("held?session={}", session["session"].as_str().unwrap());
    Request::put(&held, "1").send(old.client_address(1)).await.unwrap().expect_success();
    let load = Load::start(&old, 4, "during");
    load.wait_for_more(200).await;
    let path = home.path().join("one.backup");
    let list = endpoints(&old);
    let printed = succeed("quorate", &["--endpoints", &list, "--output", "json", "backup", text(&path)]).await;
    let saved: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let revision = saved["revision"].as_str().unwrap().parse::<u64>().unwrap();
    assert_eq!(saved["bytes"].as_u64().unwrap(), fs::metadata(&path).unwrap().len());
    load.wait_for_more(200).await;
    load.finish().await;
    let before = entries(&client, Some(revision)).await;
    refuse("quorate", &["--endpoints", &list, "backup", text(&path)], 2, "is there already").await;
    let printed = succeed("quorate-node", &["backup", "verify", text(&path)]).await;
    assert!(printed.contains("The backup is whole") && printed.contains(&revision.to_string()));
    let metrics = Request::get("/metrics").send(old.client_address(1)).await.unwrap().text();
    assert!(metrics.contains("quorate_backups_completed_total{kind=\"stream\"}"), "{metrics}");

    let new = restored(&path).await;
    let fresh = new.client_without(None);
    let after = entries(&fresh, None).await;
    let without = |entries: &BTreeMap<String, EntryView>| -> BTreeMap<String, _> {
        let lasting = entries.iter().filter(|(key, _)| *key != "held");
        lasting.map(|(key, entry)| (key.clone(), self::lasting(entry))).collect()
    };
    assert_eq!(without(&before), without(&after));
    assert!(before.contains_key("held") && !after.contains_key("held"), "it went with its session");

    let (one, other) = (old.status(1).await.unwrap(), new.status(2).await.unwrap());
    assert_ne!(one.cluster_id, other.cluster_id);
    assert_eq!((one.epoch, other.epoch), (0, 1));
    assert!(other.revision > 1_000_000_000_000 && other.epoch_revision > 1_000_000_000_000);
    // The first node is alone at first; the others ask for their votes once they have caught up.
    eventually("all three vote", PATIENCE, async || {
        let voters = new.status(2).await?.members.iter().filter(|member| member.voter).count();
        if voters == 3 { Ok(()) } else { Err(format!("{voters} voters")) }
    })
    .await;

    let error = fresh.cas("config/a", first.cas.unwrap(), Value::json(&json!({"n": 2})).unwrap()).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::CasMismatch));
    for target in ["/v1/watch?prefix=config&from=2", "/v1/kv/config/a?min_revision=2", "/v1/kv/config/a?revision=2"] {
        let problem = Request::get(target).send(new.client_address(3)).await.unwrap().problem();
        assert_eq!(problem.code, ErrorCode::Compacted, "{target}");
        assert_eq!(problem.oldest_revision, Some(other.epoch_revision), "{target}");
    }
    assert_eq!(fresh.sequence("orders").next(1).await.unwrap().first, 4, "no number is given twice");
    let claimed = fresh.tasks("mail").claim().wait(PATIENCE).await.unwrap().first().expect("it is due");
    assert_eq!(claimed.id(), "t1");
    claimed.complete().await.unwrap();
    let mut new = new;
    new.assert_agreement().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_that_is_damaged_or_none_is_refused_by_name() {
    let home = tempfile::tempdir().unwrap();
    let cluster = Cluster::start_with(Settings::with_ids([1])).await;
    let client = cluster.client_without(None);
    for n in 0..50 {
        client.put(format!("k/{n}"), Value::json(&json!(n)).unwrap()).await.unwrap();
    }
    let path = home.path().join("whole");
    let saved = client.backup(&path).save().await.unwrap();
    let whole = fs::read(&path).unwrap();
    assert_eq!(saved.bytes, whole.len() as u64);
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 4;
    let cases = [
        ("flipped", flipped, "the backup is damaged at byte"),
        ("cut", whole[..whole.len() / 2].to_vec(), "the backup is cut short"),
        ("none", b"hello".to_vec(), "this is no backup of Quorate"),
        ("empty", Vec::new(), "this is no backup of Quorate"),
    ];
    for (name, bytes, words) in cases {
        let path = home.path().join(name);
        fs::write(&path, bytes).unwrap();
        refuse("quorate-node", &["backup", "verify", text(&path)], 1, words).await;
        let data = home.path().join(format!("{name}-data"));
        let settings = ["--node-id", "1", "--join", "1=127.0.0.1:7299", "--data-dir", text(&data)];
        refuse("quorate-node", &[&["restore", "--from", text(&path)][..], &settings].concat(), 1, words).await;
        assert!(!data.join("identity").exists());
    }
    let missing = home.path().join("missing");
    refuse("quorate-node", &["backup", "verify", text(&missing)], 1, "missing: ").await;
}

/// Fault: the directory for backups is gone for a while.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scheduled_backups_are_kept_so_many_and_a_failure_is_told() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("backups");
    let settings = Settings::with_ids([1]);
    let settings = settings.flag("--backup-dir", text(&dir)).flag("--backup-every-ms", 1_000).flag("--backup-keep", 2);
    let mut cluster = Cluster::start_with(settings).await;
    cluster.client_without(None).put("a", Value::json(&json!(1)).unwrap()).await.unwrap();
    let metric = async |name: &str| {
        let text = Request::get("/metrics").send(cluster.client_address(1)).await.unwrap().text();
        let line = text.lines().find(|line| line.starts_with(name)).map(str::to_owned);
        line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .unwrap_or_else(|| panic!("no {name}: {text}"))
    };
    let completed = "quorate_backups_completed_total{kind=\"scheduled\"}";
    eventually("four backups", PATIENCE, async || match metric(completed).await {
        count if count >= 4.0 => Ok(()),
        count => Err(format!("{count} so far")),
    })
    .await;
    let files = || -> Vec<PathBuf> {
        let mut files: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.retain(|path| path.extension().is_some_and(|ext| ext == "backup"));
        files.sort();
        files
    };
    let kept = eventually("two are kept", PATIENCE, async || match files() {
        kept if kept.len() == 2 => Ok(kept),
        kept => Err(format!("{kept:?}")),
    })
    .await;
    // The newer of them, and before others come and it goes.
    let copy = home.path().join("copy");
    fs::copy(&kept[1], &copy).unwrap();
    let printed = succeed("quorate-node", &["backup", "verify", text(&copy)]).await;
    assert!(printed.contains("The backup is whole"));
    let good = metric("quorate_backup_last_success_timestamp_seconds").await;
    assert!(good > 1_600_000_000.0, "{good}");

    fs::rename(&dir, home.path().join("away")).unwrap();
    fs::write(&dir, "in the way").unwrap();
    eventually("a failure is counted", PATIENCE, async || {
        match metric("quorate_backups_failed_total{kind=\"scheduled\"}").await {
            0.0 => Err("none yet".to_owned()),
            _ => Ok(()),
        }
    })
    .await;
    eventually("the failure is told", PATIENCE, async || match cluster.log_text(1) {
        log if log.contains("no backup this time") => Ok(()),
        log => Err(log),
    })
    .await;
    fs::remove_file(&dir).unwrap();
    let so_far = metric(completed).await;
    eventually("it goes on by itself", PATIENCE, async || match metric(completed).await {
        count if count > so_far => Ok(()),
        count => Err(format!("{count}")),
    })
    .await;
    cluster.stop(1).await;
}

/// Node and programs as an operator runs them, with keys in files.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scheduled_backups_are_encrypted_and_authenticated_and_restore_with_the_keys() {
    // It is of no other use.
    const KEY: &str = "AGE-SECRET-KEY-1JT7NZVH8Y6KAFPF83VEH3NS8YUQ3XJ99RE7XU4XVLA6W6SVJY4USPC9P7U";
    const RECIPIENT: &str = "age1pv9n30e62nv8dk6damd4lev7yquy3lhcpq5h7v49xccgjr2csqgqca29hk";
    let home = tempfile::tempdir().unwrap();
    let [dir, key, mac_key, other] = ["backups", "key", "mac-key", "other-key"].map(|name| home.path().join(name));
    write_secret(&key, KEY);
    write_secret(&mac_key, "1".repeat(64));
    write_secret(&other, "2".repeat(64));
    let settings = Settings::with_ids([1]).flag("--backup-dir", text(&dir)).flag("--backup-every-ms", 1_000);
    let settings = settings.flag("--backup-recipients", RECIPIENT).flag("--backup-mac-key", text(&mac_key));
    let mut cluster = Cluster::start_with(settings).await;
    cluster.client_without(None).put("a", Value::json(&json!("in it")).unwrap()).await.unwrap();
    let files = || -> Vec<PathBuf> {
        let found = fs::read_dir(&dir).into_iter().flatten().map(|entry| entry.unwrap().path());
        let mut found: Vec<_> = found.filter(|path| path.to_string_lossy().ends_with(".backup.age")).collect();
        found.sort();
        found
    };
    // One that began after the write.
    let count = files().len();
    let all = eventually("three backups", PATIENCE, async || match files() {
        all if all.len() >= count + 3 => Ok(all),
        all => Err(format!("{all:?}")),
    })
    .await;
    cluster.stop(1).await;
    let backup = all.last().unwrap();
    let bytes = fs::read(backup).unwrap();
    assert!(bytes.starts_with(b"age-encryption.org/v1") && !bytes.windows(5).any(|part| part == b"in it"));
    let (opened, proved) = (["--key", text(&key)], ["--mac-key", text(&mac_key)]);
    let printed = succeed("quorate-node", &[&["backup", "verify", text(backup)][..], &opened, &proved].concat()).await;
    assert!(printed.contains("The backup is whole"), "{printed}");
    let printed = succeed("quorate-node", &[&["backup", "list", text(backup)][..], &opened].concat()).await;
    assert!(printed.contains("in it"), "{printed}");
    refuse("quorate-node", &["backup", "verify", text(backup)], 1, "is encrypted, and no key was given").await;
    let foreign = [&["backup", "verify", text(backup)][..], &opened, &["--mac-key", text(&other)]].concat();
    refuse("quorate-node", &foreign, 1, "is not authentic").await;
    let data = home.path().join("data");
    let restore = ["restore", "--from", text(backup), "--data-dir", text(&data), "--node-id", "1"];
    let restore = [&restore[..], &["--join", "1=127.0.0.1:7299"]].concat();
    refuse("quorate-node", &restore, 1, "is encrypted, and no key was given").await;
    let printed = succeed("quorate-node", &[&restore[..], &opened, &proved].concat()).await;
    assert!(printed.contains("Restored") && fs::metadata(data).unwrap().is_dir(), "{printed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scheduled_backups_leave_the_room_on_a_shared_disk_to_writes() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("backups");
    let settings = Settings::with_ids([1]).flag("--min-free-bytes", 1_u64 << 49);
    let settings = settings.flag("--backup-dir", text(&dir)).flag("--backup-every-ms", 1_000);
    let cluster = Cluster::start_with(settings.data_home(home.path())).await;
    eventually("the failure is told", PATIENCE, async || match cluster.log_text(1) {
        log if log.contains("writes of the cluster come first") => Ok(()),
        _ => Err("not yet".to_owned()),
    })
    .await;
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0, "nothing is left of it");
    eventually("status warns", PATIENCE, async || {
        let warnings = cluster.status(1).await?.warnings.join("; ");
        if warnings.contains("there is no good backup") { Ok(()) } else { Err(warnings) }
    })
    .await;
}

/// One cluster is exported, another one is filled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_exported_can_be_imported_elsewhere() {
    let home = tempfile::tempdir().unwrap();
    let one = Cluster::start_with(Settings::with_ids([1])).await;
    let two = Cluster::start_with(Settings::with_ids([1])).await;
    let client = one.client_without(None);
    fill(&client, 1_500, |n| format!("k/{n:04}"), |n| json!({"n": n})).await;
    client.put("lines", Value::json_text("{\n  \"a\": [1.50,\r\n 2]\n}".to_owned())).await.unwrap();
    client.put("bytes", Value::bytes([0, 10, 255].as_slice())).await.unwrap();
    client.put("short", Value::json(&json!("x")).unwrap()).ttl(Duration::from_secs(600)).await.unwrap();
    let path = home.path().join("all.ndjson");
    let printed = succeed("quorate", &["--endpoints", &endpoints(&one), "export", text(&path)]).await;
    assert!(printed.contains("1503 entries of revision"), "{printed}");
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 1_503);
    refuse("quorate", &["--endpoints", &endpoints(&one), "export", text(&path)], 2, "is there already").await;
    succeed("quorate", &["--endpoints", &endpoints(&two), "import", text(&path), "--op", "upsert"]).await;
    let other = two.client_without(None);
    let (before, after) = (entries(&client, None).await, entries(&other, None).await);
    let values = |entries: &BTreeMap<String, EntryView>| -> Vec<(String, String)> {
        let plain = |entry: &EntryView| lasting(entry).0.split_whitespace().collect::<String>();
        entries.iter().map(|(key, entry)| (key.clone(), plain(entry))).collect()
    };
    assert_eq!(values(&before), values(&after));
    assert!(after["short"].ttl_ms.is_some_and(|left| left > 500_000 && left <= 600_000), "{:?}", after["short"]);
}

/// Most memory that a backup may take beside what the node takes anyway.
const BACKUP_MEMORY_BYTES_MAX: u64 = 64 << 20;

/// Memory of a process in RAM.
fn resident_bytes(id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() * 1_024
}

/// The memory is that of a whole process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_many_times_its_memory_goes_on_beside_writes() {
    let home = tempfile::tempdir().unwrap();
    let cluster = Cluster::start_with(Settings::with_ids([1])).await;
    let client = cluster.client_without(None);
    let text = "x".repeat(200_000);
    fill(&client, 1_100, |n| format!("large/{n}"), move |n| json!({"n": n, "text": text})).await;
    // One before, so that what the walk leaves in the allocator is no surprise.
    client.backup(home.path().join("first")).save().await.unwrap();
    let load = Load::start(&cluster, 4, "beside");
    load.wait_for_more(200).await;
    let before = resident_bytes(cluster.process_id(1));
    load.reset_longest();
    let (path, node) = (home.path().join("second"), cluster.process_id(1));
    let mut highest = before;
    let backup = client.backup(&path).on_progress(|_| highest = highest.max(resident_bytes(node)));
    let saved = backup.save().await.unwrap();
    let (grown, longest) = (highest.saturating_sub(before), load.longest());
    load.finish().await;
    println!("{} bytes of backup, {grown} bytes more memory, the longest write took {longest:?}", saved.bytes);
    assert!(saved.bytes > 3 * BACKUP_MEMORY_BYTES_MAX, "{saved:?}");
    assert!(grown < BACKUP_MEMORY_BYTES_MAX, "{grown} bytes more than {before}");
}
