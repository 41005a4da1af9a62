//! Archives of running clusters, and new clusters made of points of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cluster_harness::cluster::PATIENCE;
use cluster_harness::load::Load;
use cluster_harness::{Cluster, Request, Settings, eventually, write_secret};
use quorate_client::api::EntryView;
use quorate_client::{Client, Scrape, Value};
use serde_json::json;
use tempfile::TempDir;

use crate::backups::{refuse, run, said, succeed};
use crate::damage::copy;

/// The key that opens the archives of these tests, and its public half. It is of no other use.
const KEY: &str = "AGE-SECRET-KEY-1JT7NZVH8Y6KAFPF83VEH3NS8YUQ3XJ99RE7XU4XVLA6W6SVJY4USPC9P7U";
const RECIPIENT: &str = "age1pv9n30e62nv8dk6damd4lev7yquy3lhcpq5h7v49xccgjr2csqgqca29hk";
/// Another one.
const OTHER_KEY: &str = "AGE-SECRET-KEY-1HW2CJCP32JSGFG4PH23XM5QEUNV758JSKDVTTF84S32CRYWEJ60SHHF204";

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A home that goes with the test, the place of an archive in it, and nodes that archive there so often.
fn archiving(nodes: Settings, every_ms: u64) -> (TempDir, PathBuf, Settings) {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("archive");
    let settings = nodes.flag("--archive", text(&dir)).flag("--archive-interval-ms", every_ms);
    (home, dir, settings)
}

async fn metric(cluster: &Cluster, id: u64, name: &str) -> f64 {
    let answer = Request::get("/metrics").send(cluster.client_address(id)).await.unwrap().expect_success();
    let scrape = Scrape::parse(&answer.text()).unwrap();
    scrape.value(name).unwrap_or_else(|| panic!("no {name}"))
}

/// Waits until everything that is applied now is in the archive.
async fn wait_archived(cluster: &Cluster) {
    let leader = cluster.leader().await;
    let wanted = cluster.status(leader).await.unwrap().applied_index as f64;
    eventually("all is archived", PATIENCE, async || {
        let (index, bases) = (
            metric(cluster, leader, "quorate_archive_index").await,
            metric(cluster, leader, "quorate_archive_bases").await,
        );
        match index >= wanted && bases > 0.0 {
            true => Ok(()),
            false => Err(format!("{index} of {wanted}, {bases} bases: {:?}", cluster.status(leader).await?.warnings)),
        }
    })
    .await;
}

/// All entries, as they were at a revision; of each what a restore brings back: all but its token.
async fn entries(client: &Client, revision: Option<u64>) -> BTreeMap<String, (String, u64, u64, u64)> {
    let list = client.list("").limit(1_000);
    let list = revision.map_or(list.clone(), |revision| list.revision(revision));
    let (mut all, mut page) = (BTreeMap::new(), list.page().await.unwrap());
    let lasting = |entry: &EntryView| {
        let value = entry.value.as_ref().map(|value| value.0.get().to_owned());
        let value = value.or_else(|| entry.value_base64.clone()).unwrap();
        (value, entry.create_revision, entry.mod_revision, entry.version)
    };
    loop {
        all.extend(page.entries.iter().map(|entry| (entry.key.to_string(), lasting(entry))));
        match page.cursor {
            Some(cursor) => page = list.page_after(&cursor).await.unwrap(),
            None => return all,
        }
    }
}

/// A cluster of one node out of an archive, and what the restore printed.
async fn restored(from: &str, more: &[&str]) -> (Cluster, String) {
    let mut cluster = Cluster::new(Settings::with_ids([1]));
    let mut arguments: Vec<_> = ["restore", "--from", from].iter().chain(more).map(|text| (*text).to_owned()).collect();
    arguments.extend(cluster.arguments(1));
    let output = run("quorate-node", arguments).await;
    assert!(output.status.success(), "{}", said(&output));
    cluster.start_all();
    cluster.wait_all_ready().await;
    (cluster, said(&output))
}

/// The revision that a restore says it is of.
fn revision_in(printed: &str) -> u64 {
    let line = printed.lines().find_map(|line| line.strip_prefix("  revision ")).expect("a revision");
    line.trim().parse().unwrap()
}

/// Archives two writes of a key, and gives the revision of the second.
async fn archive_two(cluster: &Cluster, client: &Client) -> String {
    put(client, "k", 1).await;
    wait_archived(cluster).await;
    let revision = put(client, "k", 2).await.to_string();
    wait_archived(cluster).await;
    revision
}

/// Lists an archive as an operator does.
async fn list(dir: &Path) -> String {
    succeed("quorate-node", &["archive", "list", "--from", text(dir)]).await
}

async fn wait_for_second_base(dir: &Path, what: &str) {
    eventually(what, PATIENCE, async || {
        let listed = list(dir).await;
        if listed.matches("base of").count() == 2 { Ok(()) } else { Err(listed) }
    })
    .await;
}

async fn put(client: &Client, key: &str, n: u64) -> u64 {
    client.put(key, Value::json(&json!(n)).unwrap()).await.unwrap().revision
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_revision_and_any_time_of_a_cluster_under_load_can_be_restored_also_over_a_failover() {
    let (_home, dir, settings) = archiving(Settings::default(), 200);
    // So little of the log is kept that it would go before it is archived if it did not wait.
    let settings = settings
        .flag("--archive-base-every-ms", 3_000)
        .flag("--archive-verify-every-ms", 1_000)
        .flag("--archive-merge-ms", 2_000)
        .flag("--snapshot-every-entries", 100)
        .flag("--keep-log-entries", 10);
    check_points(settings, text(&dir), &[], &[]).await;
}

/// Points of a cluster that merges what it archives, under load, with a leader killed on the way, against what the cluster itself
/// shows of its past.
async fn check_points(settings: Settings, from: &str, environment: &[(&str, &str)], key: &[&str]) {
    let mut old = Cluster::new(settings);
    for id in old.ids() {
        environment.iter().for_each(|(name, value)| old.set_environment(id, name, value));
    }
    old.start_all();
    old.wait_all_ready().await;
    let client = old.client_without(None);
    let load = Load::start(&old, 4, "archived");
    load.wait_for_more(200).await;
    // What was before the first base cannot be restored.
    wait_archived(&old).await;
    let one = put(&client, "marker/one", 1).await;
    load.wait_for_more(100).await;
    // The leader that is killed may be about to merge more, or to remove what it merged.
    eventually("pieces of the log are merged", PATIENCE, async || {
        let listed = run("quorate-node", ["archive", "list", "--from", from].map(str::to_owned).into()).await;
        let is_merged = listed.status.success() && !said(&listed).contains(" and 0 bundles of pieces");
        if is_merged { Ok(()) } else { Err(said(&listed)) }
    })
    .await;
    let leader = old.leader().await;
    old.kill(leader).await;
    load.wait_for_more(200).await;
    let two = put(&client, "marker/two", 2).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    let time = jiff::Timestamp::now();
    tokio::time::sleep(Duration::from_millis(20)).await;
    put(&client, "marker/three", 3).await;
    load.wait_for_more(100).await;
    old.start_node(leader);
    old.wait_all_ready().await;
    load.wait_for_more(100).await;
    load.finish().await;
    wait_archived(&old).await;

    for (point, wanted) in [
        (vec!["--revision".to_owned(), one.to_string()], Some(one)),
        (vec!["--at".to_owned(), time.to_string()], None),
        (vec![], None),
    ] {
        let point: Vec<&str> = point.iter().map(String::as_str).chain(key.iter().copied()).collect();
        let (mut new, printed) = restored(from, &point).await;
        let revision = revision_in(&printed);
        assert_eq!(wanted.unwrap_or(revision), revision, "{printed}");
        let there = entries(&new.client_without(None), None).await;
        assert_eq!(there, entries(&client, Some(revision)).await, "{point:?}");
        if point.first() == Some(&"--at") {
            assert!(
                revision >= two && there.contains_key("marker/two") && !there.contains_key("marker/three"),
                "{printed}"
            );
        }
        let status = new.status(1).await.unwrap();
        assert_eq!(status.epoch, 1);
        new.assert_agreement().await;
    }

    let arguments = [&["archive", "verify", "--restore", "--from", from][..], key].concat();
    let printed = succeed("quorate-node", &arguments).await;
    assert!(printed.contains("The state at its end can be restored"), "{printed}");
    eventually("there is more than one base, and no gap", PATIENCE, async || {
        let printed = succeed("quorate-node", &["archive", "list", "--from", from]).await;
        if !printed.contains("gap:") && printed.matches("base of").count() >= 2 { Ok(()) } else { Err(printed) }
    })
    .await;
    let leader = old.leader().await;
    eventually("a restore was tried by the leader", PATIENCE, async || {
        match metric(&old, leader, "quorate_archive_verified_timestamp_seconds").await {
            0.0 => Err(old.status(leader).await?.warnings.join("; ")),
            _ => Ok(()),
        }
    })
    .await;
    assert_eq!(metric(&old, leader, "quorate_archive_gaps_total").await, 0.0);
    old.assert_agreement().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_verification_says_what_is_damaged_and_whether_the_end_can_be_restored_without_it() {
    let (_home, dir, settings) = archiving(Settings::with_ids([1]), 100);
    let mut cluster = Cluster::start_with(settings.flag("--archive-base-every-ms", 1_000)).await;
    let client = cluster.client_without(None);
    let mut written = 0;
    eventually("there are three bases", PATIENCE, async || {
        written += 1;
        put(&client, "k", written).await;
        wait_archived(&cluster).await;
        match metric(&cluster, 1, "quorate_archive_bases_written_total").await {
            bases if bases >= 3.0 => Ok(()),
            bases => Err(bases.to_string()),
        }
    })
    .await;
    cluster.stop(1).await;
    let bases = files(&files(&dir).remove(0).join("base"));
    // The one that a trial begins with.
    let damaged = &bases[bases.len() - 2];
    flip(&damaged.join("state"));
    let arguments = ["archive", "verify", "--restore", "--from", text(&dir)];
    let name = damaged.file_name().unwrap().to_str().unwrap();
    for words in [
        "has 1 faults",
        "The state at its end can be restored",
        &format!("without what cannot be had: base/{name}/state is damaged"),
    ] {
        refuse("quorate-node", &arguments, 1, words).await;
    }
}

/// An archive of one node, encrypted, of at least four pieces.
async fn encrypted_archive(home: &Path) -> PathBuf {
    let (dir, key) = (home.join("archive"), home.join("key"));
    write_secret(&key, format!("# public key: {RECIPIENT}\n{KEY}\n"));
    write_secret(home.join("other-key"), OTHER_KEY);
    let settings = Settings::with_ids([1])
        .flag("--archive", text(&dir))
        .flag("--archive-interval-ms", 100)
        .flag("--archive-recipients", RECIPIENT);
    let mut cluster = Cluster::start_with(settings).await;
    let client = cluster.client_without(None);
    for n in 0..6 {
        put(&client, &format!("k/{n}"), n).await;
        wait_archived(&cluster).await;
    }
    cluster.stop(1).await;
    dir
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

fn flip(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    fs::write(path, bytes).unwrap();
}

/// Faults: damaged and missing pieces, wrong keys, points that are not there. Words and exit codes are those of the program.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_restored_is_refused_with_what_to_do_and_nothing_is_written() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let whole = encrypted_archive(home).await;
    let part = files(&whole).remove(0);
    let name = part.file_name().unwrap().to_str().unwrap().to_owned();
    let pieces = files(&part.join("log"));
    assert!(pieces.len() >= 4, "{pieces:?}");
    let middle = pieces[pieces.len() / 2].file_name().unwrap().to_owned();
    let base = files(&part.join("base")).remove(0).file_name().unwrap().to_owned();
    let changed = |what: &str, change: &dyn Fn(&Path)| {
        let dir = home.join(what);
        copy(&whole, &dir);
        change(&dir.join(&name));
        dir
    };
    let damaged_base = changed("damaged-base", &|part| flip(&part.join("base").join(&base).join("state.age")));
    let no_manifest =
        changed("no-manifest", &|part| fs::remove_file(part.join("base").join(&base).join("manifest.json")).unwrap());
    let damaged_piece = changed("damaged-piece", &|part| flip(&part.join("log").join(&middle)));
    let missing_piece = changed("missing-piece", &|part| fs::remove_file(part.join("log").join(&middle)).unwrap());
    let two_clusters = changed("two-clusters", &|part| {
        copy(&part.join("log"), &part.with_file_name(format!("quorate-{:032x}", 7)).join("log"));
    });
    let (empty, missing) = (home.join("empty"), home.join("missing"));
    fs::create_dir(&empty).unwrap();
    let (key, other_key) = (home.join("key"), home.join("other-key"));
    let key: [&str; 2] = ["--key", text(&key)];
    let cases: Vec<(&Path, Vec<&str>, i32, &str)> = vec![
        (damaged_base.as_path(), key.to_vec(), 1, "is damaged: its bytes are not those that were written"),
        (no_manifest.as_path(), key.to_vec(), 5, "holds no whole base"),
        (damaged_piece.as_path(), key.to_vec(), 5, "is damaged"),
        (missing_piece.as_path(), key.to_vec(), 5, "has a gap: entries"),
        (two_clusters.as_path(), key.to_vec(), 1, "say which by --cluster"),
        (whole.as_path(), vec![], 1, "is encrypted, and no key was given"),
        (whole.as_path(), vec!["--key", text(&other_key)], 1, "none of the keys given opens it"),
        (whole.as_path(), [&key[..], &["--at", "2001-01-01T00:00:00Z"]].concat(), 5, "ask for a point from there on"),
        (whole.as_path(), [&key[..], &["--revision", "999999999"]].concat(), 5, "or for the latest by --latest"),
        (whole.as_path(), [&key[..], &["--at", "yesterday"]].concat(), 2, "write it with date, time and zone"),
        (empty.as_path(), key.to_vec(), 1, "there is no archive of a cluster in"),
        (missing.as_path(), vec!["--latest"], 2, "are about an archive"),
    ];
    let settings = ["--node-id", "1", "--join", "1=127.0.0.1:7299"];
    for (number, (from, more, code, words)) in cases.into_iter().enumerate() {
        let data = home.join(format!("data-{number}"));
        let arguments = [&["restore", "--from", text(from), "--data-dir", text(&data)][..], &settings, &more].concat();
        refuse("quorate-node", &arguments, code, words).await;
        assert!(!data.exists() || files(&data).is_empty(), "{words}: {:?}", files(&data));
    }
    // Damage is found without a key, and named.
    for (dir, words) in
        [(&damaged_base, "state is damaged"), (&damaged_piece, "is damaged"), (&missing_piece, "are missing")]
    {
        refuse("quorate-node", &["archive", "verify", "--from", text(dir)], 1, words).await;
    }
    // What is before the damage can be restored.
    let first = list(&missing_piece).await;
    assert!(first.contains("gap: entries") && first.contains(RECIPIENT), "{first}");
    let file = home.join("whole.backup");
    succeed("quorate-node", &["archive", "backup", "--from", text(&whole), key[0], key[1], text(&file)]).await;
    let listed = succeed("quorate-node", &["backup", "list", "--keys", text(&file)]).await;
    assert_eq!(listed.lines().collect::<Vec<_>>(), ["k/0", "k/1", "k/2", "k/3", "k/4", "k/5"]);
}

/// Fault: a file is where the directory of the archive should be.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_waits_for_an_archive_that_cannot_be_reached_and_the_operator_is_told() {
    let (_home, dir, settings) = archiving(Settings::with_ids([1]), 100);
    let settings = settings.flag("--snapshot-every-entries", 20).flag("--keep-log-entries", 5);
    // A file where the directory should be.
    fs::write(&dir, "in the way").unwrap();
    let mut cluster = Cluster::start_with(settings).await;
    let client = cluster.client_without(None);
    for n in 0..100 {
        put(&client, &format!("k/{n}"), n).await;
    }
    eventually("the failure is told", PATIENCE, async || match cluster.log_text(1) {
        log if log.contains("the archive cannot be opened") => Ok(()),
        log => Err(log),
    })
    .await;
    eventually("a snapshot covers most of it", PATIENCE, async || match cluster.status(1).await?.snapshot_index {
        index if index > 60 => Ok(()),
        index => Err(index.to_string()),
    })
    .await;
    assert_eq!(cluster.status(1).await.unwrap().purged_index, 0, "it waits for the archive");
    cluster.stop(1).await;
    fs::remove_file(&dir).unwrap();
    cluster.start_node(1);
    cluster.wait_all_ready().await;
    wait_archived(&cluster).await;
    eventually("the log goes once it is archived", PATIENCE, async || {
        client.put("more", Value::json(&json!(1)).unwrap()).await.unwrap();
        match cluster.status(1).await?.purged_index {
            index if index > 60 => Ok(()),
            index => Err(index.to_string()),
        }
    })
    .await;
    assert_eq!(metric(&cluster, 1, "quorate_archive_gaps_total").await, 0.0);
    cluster.stop(1).await;
}

/// Puts a file where the directory of an archive is: nothing can be read or written there until it is [brought back](bring_back).
fn take_away(dir: &Path) {
    fs::rename(dir, dir.with_extension("away")).unwrap();
    fs::write(dir, "in the way").unwrap();
}

fn bring_back(dir: &Path) {
    fs::remove_file(dir).unwrap();
    fs::rename(dir.with_extension("away"), dir).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_whose_log_came_with_a_snapshot_leaves_what_it_lacks_to_a_node_that_has_it() {
    let (home, dir, settings) = archiving(Settings::default(), 200);
    let settings = settings
        .flag("--archive-verify-every-ms", 0)
        .flag("--snapshot-every-entries", 50)
        .flag("--keep-log-entries", 5);
    let mut cluster = Cluster::start_with(settings).await;
    let client = cluster.client_without(None);
    wait_archived(&cluster).await;
    eventually("the log of the leader begins behind its beginning", PATIENCE, async || {
        put(&client, "more", 1).await;
        match cluster.status(cluster.leader().await).await?.purged_index {
            0 => Err("all of it is there".to_owned()),
            _ => Ok(()),
        }
    })
    .await;
    wait_archived(&cluster).await;
    take_away(&dir);
    let leader = cluster.leader().await;
    let archived = cluster.status(leader).await.unwrap().applied_index;
    let marker = put(&client, "marker", 1).await;
    eventually("a snapshot goes beyond the archive", PATIENCE, async || {
        put(&client, "more", 2).await;
        match cluster.status(leader).await?.snapshot_index {
            index if index > archived + 20 => Ok(()),
            index => Err(format!("{index} of {archived}")),
        }
    })
    .await;
    // It gets that snapshot, and with it a log that begins behind what is archived.
    let newcomer = cluster.new_id();
    cluster.add_node(newcomer);
    cluster.bring_up(newcomer).await;
    cluster.hand_leadership_to(newcomer).await;
    let begins = cluster.status(newcomer).await.unwrap().purged_index;
    assert!(begins > archived, "it lacks nothing: {begins} of {archived}");
    bring_back(&dir);
    let wanted = cluster.status(newcomer).await.unwrap().applied_index as f64;
    eventually("all is archived", 2 * PATIENCE, async || {
        match metric(&cluster, cluster.leader().await, "quorate_archive_index").await {
            index if index >= wanted => Ok(()),
            index => Err(format!("{index} of {wanted}")),
        }
    })
    .await;
    assert_ne!(cluster.leader().await, newcomer);
    for id in cluster.ids() {
        assert_eq!(metric(&cluster, id, "quorate_archive_gaps_total").await, 0.0, "node {id}");
    }
    let listed = list(&dir).await;
    assert!(!listed.contains("gap:"), "{listed}");
    let file = home.path().join("marker.backup");
    let marker = marker.to_string();
    let arguments = ["archive", "backup", "--from", text(&dir), "--revision", &marker, text(&file)];
    succeed("quorate-node", &arguments).await;
    cluster.assert_agreement().await;
}

/// Fault: SIGINT, at another moment each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_of_an_archive_that_is_interrupted_leaves_nothing() {
    const TRIES: u32 = 5;
    let home = tempfile::tempdir().unwrap();
    let [key, scratch, file] = ["key", "scratch", "now.backup"].map(|name| home.path().join(name));
    let dir = encrypted_archive(home.path()).await;
    fs::create_dir(&scratch).unwrap();
    for pause in 0..TRIES {
        let arguments = ["archive", "backup", "--from", text(&dir), "--key", text(&key), "--scratch", text(&scratch)];
        let program = crate::guide::built("quorate-node");
        let mut child = std::process::Command::new(program).args(arguments).arg(&file).spawn().unwrap();
        eventually("it has begun", PATIENCE, async || {
            let has_begun = !files(&scratch).is_empty() || child.try_wait().unwrap().is_some();
            if has_begun { Ok(()) } else { Err("there is nothing yet".to_owned()) }
        })
        .await;
        // At another moment each time.
        tokio::time::sleep(Duration::from_millis(10 * u64::from(pause))).await;
        let interrupted = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).output().unwrap();
        println!("try {pause}: {}", said(&interrupted));
        let status = tokio::task::spawn_blocking(move || child.wait()).await.unwrap().unwrap();
        assert_eq!(files(&scratch), Vec::<PathBuf>::new(), "{status}");
        let parts: Vec<_> = files(home.path()).into_iter().filter(|path| text(path).contains(".part")).collect();
        assert_eq!(parts, Vec::<PathBuf>::new(), "{status}");
        assert!(file.exists() || !status.success(), "{status}");
        if file.exists() {
            // It was faster.
            succeed("quorate-node", &["backup", "list", "--keys", text(&file)]).await;
            fs::remove_file(&file).unwrap();
        }
    }
}

async fn warns_of_the_place(cluster: &Cluster, id: u64) -> Result<(), String> {
    match cluster.status(id).await?.warnings.join("; ") {
        warnings if warnings.contains("is not the place in which this cluster archived before") => Ok(()),
        warnings => Err(warnings),
    }
}

/// Fault: a file system that is not mounted any more. Followers and newcomers must know the place as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_is_not_the_place_of_the_archive_any_more_takes_nothing() {
    let (home, dir, settings) = archiving(Settings::default(), 100);
    let mut cluster = Cluster::start_with(settings.flag("--archive-verify-every-ms", 0)).await;
    let client = cluster.client_without(None);
    put(&client, "k", 1).await;
    wait_archived(&cluster).await;
    // As where a file system is not mounted any more: an empty directory.
    let away = home.path().join("away");
    fs::rename(&dir, &away).unwrap();
    fs::create_dir(&dir).unwrap();
    for id in cluster.ids() {
        eventually("it is told", PATIENCE, async || warns_of_the_place(&cluster, id).await).await;
    }
    // After a start, and on a node that has never seen the place.
    let follower = cluster.follower().await;
    cluster.kill(follower).await;
    cluster.bring_up(follower).await;
    eventually("it is told again", PATIENCE, async || warns_of_the_place(&cluster, follower).await).await;
    let newcomer = cluster.new_id();
    cluster.add_node(newcomer);
    cluster.bring_up(newcomer).await;
    eventually("the newcomer knows it from the others", PATIENCE, async || {
        warns_of_the_place(&cluster, newcomer).await
    })
    .await;
    put(&client, "k", 2).await;
    assert_eq!(files(&dir), Vec::<PathBuf>::new(), "nothing was written there");
    fs::remove_dir(&dir).unwrap();
    fs::rename(&away, &dir).unwrap();
    wait_archived(&cluster).await;
    for id in cluster.ids() {
        assert_eq!(metric(&cluster, id, "quorate_archive_gaps_total").await, 0.0, "node {id}");
    }
}

/// A node that starts again with another key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_change_of_keys_there_is_a_base_for_the_new_one_at_once_and_what_was_before_is_no_fault() {
    let (home, dir, settings) = archiving(Settings::with_ids([1]), 100);
    let [key, other_key] = ["key", "other-key"].map(|name| home.path().join(name));
    write_secret(&key, KEY);
    write_secret(&other_key, OTHER_KEY);
    let settings = settings.flag("--archive-key", text(&key)).flag("--archive-verify-every-ms", 1_000);
    let mut cluster = Cluster::start_with(settings).await;
    let client = cluster.client_without(None);
    let before = archive_two(&cluster, &client).await;
    cluster.stop(1).await;
    cluster.set_flag(1, "--archive-key", text(&other_key));
    cluster.bring_up(1).await;
    put(&client, "k", 3).await;
    wait_for_second_base(&dir, "there is a base for the new key, though the other is no day old").await;
    eventually("a trial found that it can be restored, and tells what is locked", PATIENCE, async || {
        let listed = list(&dir).await;
        let is_told = listed.contains("it is to be had") && listed.contains("can be restored with another key alone");
        if is_told { Ok(()) } else { Err(listed) }
    })
    .await;
    assert_eq!(metric(&cluster, 1, "quorate_archive_verify_failed").await, 0.0);
    // The points of before are there for whoever kept the key.
    let file = home.path().join("before.backup");
    let revision = ["archive", "backup", "--from", text(&dir), "--key", text(&key), "--revision", &before, text(&file)];
    succeed("quorate-node", &revision).await;
}

/// Fault: pieces that somebody without the key could have written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_the_key_of_macs_nothing_is_restored_that_was_written_without_it() {
    let (home, dir, settings) = archiving(Settings::with_ids([1]), 100);
    let [mac_key, other_key] = ["mac-key", "other-mac-key"].map(|name| home.path().join(name));
    write_secret(&mac_key, "1".repeat(64));
    write_secret(&other_key, "2".repeat(64));
    let mut cluster = Cluster::start_with(settings.flag("--archive-verify-every-ms", 1_000)).await;
    let client = cluster.client_without(None);
    let before = archive_two(&cluster, &client).await;
    cluster.stop(1).await;
    cluster.set_flag(1, "--archive-mac-key", text(&mac_key));
    cluster.bring_up(1).await;
    let after = put(&client, "k", 3).await.to_string();
    let from = text(&dir);
    wait_for_second_base(&dir, "there is a base with a MAC, though the other is no day old").await;
    wait_archived(&cluster).await;
    eventually("a trial takes what has a MAC, and tells of the rest", PATIENCE, async || {
        let listed = list(&dir).await;
        if listed.contains("it is to be had") && listed.contains("has no MAC") { Ok(()) } else { Err(listed) }
    })
    .await;
    assert_eq!(metric(&cluster, 1, "quorate_archive_verify_failed").await, 0.0);
    let file = |name: &str| home.path().join(name);
    let [whole, all] = [file("whole.backup"), file("all.backup")];
    let (with_key, with_other) = (["--mac-key", text(&mac_key)], ["--mac-key", text(&other_key)]);
    let begin = ["archive", "backup", "--from", from];
    succeed("quorate-node", &[&begin[..], &with_key, &["--revision", &after, text(&whole)]].concat()).await;
    let listed = succeed("quorate-node", &[&["archive", "list", "--from", from][..], &with_key].concat()).await;
    assert!(listed.matches("base of").count() == 1 && listed.contains("not to be had: base/"), "{listed}");
    // Without the key all is read as it always was.
    succeed("quorate-node", &[&begin[..], &["--revision", &before, text(&all)]].concat()).await;
    let none = file("none.backup");
    let past = [&begin[..], &with_key, &["--revision", &before, text(&none)]].concat();
    refuse("quorate-node", &past, 5, "has no MAC").await;
    refuse("quorate-node", &[&["archive", "verify", "--from", from][..], &with_other].concat(), 1, "is not authentic")
        .await;
    let foreign = [&begin[..], &with_other, &["--latest", text(&none)]].concat();
    refuse("quorate-node", &foreign, 1, "has no MAC").await;
    assert!(!none.exists());
}

/// Set by `scripts/conformance s3`: where a bucket is, s3://BUCKET/PREFIX, with what AWS's tools want in the environment.
const S3: &str = "QUORATE_TEST_S3";

/// Fault: the leader is killed. A real server keeps what it archived.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_s3_server_holds_an_archive_as_a_directory_does() {
    let Ok(bucket) = std::env::var(S3) else {
        println!("left out: {S3} names no S3 server; `scripts/conformance s3` starts one and runs this");
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let key = home.path().join("key");
    write_secret(&key, KEY);
    let from = format!("{bucket}/{:016x}", rand::random::<u64>());
    let settings = Settings::default()
        .flag("--archive", &from)
        .flag("--archive-interval-ms", 200)
        .flag("--archive-base-every-ms", 3_000)
        .flag("--archive-verify-every-ms", 1_000)
        .flag("--archive-merge-ms", 2_000)
        .flag("--archive-key", text(&key))
        .flag("--snapshot-every-entries", 100)
        .flag("--keep-log-entries", 10);
    let names = ["AWS_ENDPOINT", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_ALLOW_HTTP"];
    let values: Vec<_> = names.iter().map(|name| std::env::var(name).unwrap_or_default()).collect();
    let environment: Vec<_> = names.iter().copied().zip(values.iter().map(String::as_str)).collect();
    check_points(settings, &from, &environment, &["--key", text(&key)]).await;

    // A secret that is wrong is told as such, and not shown.
    let arguments = vec!["archive".to_owned(), "list".to_owned(), "--from".to_owned(), from];
    let program = crate::guide::built("quorate-node");
    let wrong = std::process::Command::new(program)
        .args(arguments)
        .env("AWS_SECRET_ACCESS_KEY", "wrong-secret-of-this-test")
        .output()
        .unwrap();
    assert_eq!(wrong.status.code(), Some(1));
    assert!(said(&wrong).contains("cannot be listed") && !said(&wrong).contains("wrong-secret"), "{}", said(&wrong));
}
