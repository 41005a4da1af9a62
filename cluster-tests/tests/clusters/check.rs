//! `quorate-node check` on the directories of real nodes.

use std::fs;
use std::path::{Path, PathBuf};

use cluster_harness::cluster::PATIENCE;
use cluster_harness::load::Load;
use cluster_harness::{Cluster, Settings, eventually};

use crate::backups::{refuse, succeed};
use crate::damage::copy;

fn files(dir: &Path, is_wanted: impl Fn(&str) -> bool + Copy) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path, is_wanted)),
            false => found.extend(is_wanted(path.file_name().unwrap().to_str().unwrap()).then_some(path)),
        }
    }
    found.sort();
    found
}

fn name_of(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 0x10;
    // Another file: tables are shared with snapshots by hard links.
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Fault: a flipped byte, in each kind of file of a directory that a node has filled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sound_directory_passes_and_a_flipped_byte_anywhere_is_named() {
    let settings = Settings::with_ids([1]).flag("--snapshot-every-entries", 200).flag("--keep-log-entries", 50);
    let mut cluster = Cluster::start_with(settings).await;
    let load = Load::start(&cluster, 8, "checked");
    load.wait_for_more(2_000).await;
    load.finish().await;
    eventually("there is a snapshot", PATIENCE, async || match cluster.status(1).await?.snapshot_index {
        0 => Err("none".to_owned()),
        _ => Ok(()),
    })
    .await;
    let data = cluster.data_dir(1);
    let text = data.to_str().unwrap().to_owned();
    refuse("quorate-node", &["check", "--data-dir", &text], 1, "in use by another process").await;
    cluster.stop(1).await;
    let printed = succeed("quorate-node", &["check", "--data-dir", &text]).await;
    for words in ["identity: node 1", "log: ", "state: ", " entries\n", "snapshot: ", "is sound"] {
        assert!(printed.contains(words), "no `{words}` in:\n{printed}");
    }

    let aside = data.with_extension("aside");
    copy(&data, &aside);
    let segment = files(&data.join("log"), |name| name.ends_with(".seg")).swap_remove(0);
    let live = fs::read_to_string(data.join("state/CURRENT-DB")).unwrap();
    let live = data.join("state").join(live.split_whitespace().last().unwrap());
    let table = files(&live, |name| name.ends_with(".sst")).swap_remove(0);
    let snapshot = files(&data.join("state/snap"), |name| name.starts_with("MANIFEST-")).swap_remove(0);
    let manifest = files(&data.join("state/snap"), |name| name == "SNAPSHOT").swap_remove(0);
    for (file, at) in [
        (segment, 4096 + 20),
        (table, 100),
        (snapshot, 30),
        (manifest, 20),
        (data.join("identity"), 10),
        (data.join("log.mark"), 20),
    ] {
        flip(&file, at);
        if file.ends_with("log.mark") {
            // One slot of two may be torn.
            flip(&file, 4096 + 20);
        }
        // Of the log the directory: where a group is lost, the next segment may be what shows it.
        let name = if file.extension().is_some_and(|ext| ext == "seg") { "/data/log/" } else { name_of(&file) };
        refuse("quorate-node", &["check", "--data-dir", &text], 1, name).await;
        fs::remove_dir_all(&data).unwrap();
        copy(&aside, &data);
    }
    succeed("quorate-node", &["check", "--data-dir", &text]).await;
    cluster.bring_up(1).await;
    cluster.assert_agreement().await;
}
