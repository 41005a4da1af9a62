//! A node whose files were damaged refuses to start and names them; it never starts with less than it promised.

use std::fs;
use std::path::{Path, PathBuf};

use cluster_harness::cluster::PATIENCE;
use cluster_harness::load::Load;
use cluster_harness::{Cluster, Request};

/// Enough for files of which a part can be damaged, with the mark beside the log written more than once.
const WRITES: u64 = 3_000;

/// What is done to a file. All of it happens with disks, file systems and administrators.
#[derive(Debug, Clone, Copy)]
enum Damage {
    FlipInTheMiddle,
    /// Of a segment of the log, behind its header.
    FlipInTheFirstGroup,
    CutToHalf,
    Delete,
    Overwrite,
}

impl Damage {
    fn apply(self, file: &Path) {
        let mut bytes = fs::read(file).unwrap();
        let half = bytes.len() / 2;
        assert!(half > 0, "{} is empty, there is nothing to damage", file.display());
        match self {
            Self::FlipInTheMiddle => bytes[half] ^= 0x10,
            Self::FlipInTheFirstGroup => bytes[4096 + 20] ^= 0x10,
            Self::CutToHalf => bytes.truncate(half),
            Self::Delete => return fs::remove_file(file).unwrap(),
            Self::Overwrite => bytes.fill(b'?'),
        }
        fs::write(file, bytes).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_with_damaged_files_refuses_to_start_and_names_them() {
    let mut cluster = Cluster::start().await;
    let load = Load::start(&cluster, 8, "before-damage");
    load.wait_for_more(WRITES).await;
    load.finish().await;
    let broken = cluster.follower().await;
    let others = cluster.live_but(broken);
    cluster.kill(broken).await;
    let data = cluster.data_dir(broken);
    let aside = data.with_extension("aside");
    copy(&data, &aside);
    for (what, file, damage) in [
        ("oldest segment of the log", oldest_segment(&data), Damage::FlipInTheFirstGroup),
        ("oldest segment of the log", oldest_segment(&data), Damage::CutToHalf),
        ("oldest segment of the log", oldest_segment(&data), Damage::Delete),
        ("oldest segment of the log", oldest_segment(&data), Damage::Overwrite),
        (
            "manifest of the state",
            largest(&data.join("state"), |name| name.starts_with("MANIFEST-")),
            Damage::FlipInTheMiddle,
        ),
        ("pointer of the state", largest(&data.join("state"), |name| name == "CURRENT-DB"), Damage::Overwrite),
        ("mark beside the log", largest(&data, |name| name == "log.mark"), Damage::Overwrite),
        ("identity", largest(&data, |name| name == "identity"), Damage::FlipInTheMiddle),
        ("identity", largest(&data, |name| name == "identity"), Damage::CutToHalf),
    ] {
        println!("{damage:?} {what}: {}", file.display());
        damage.apply(&file);
        cluster.start_node(broken);
        let (end, log) = cluster.wait_end(broken, PATIENCE).await;
        assert!(!end.success(), "{damage:?} of the {what}: it ended as if all were well:\n{log}");
        assert!(names(&log, &file, &data), "{damage:?} of the {what}: no word of {} in:\n{log}", file.display());
        println!("  it said: {}", log.lines().last().unwrap_or_default());
        Request::put("others-serve", "1").send(cluster.client_address(others[0])).await.unwrap().expect_success();
        fs::remove_dir_all(&data).unwrap();
        copy(&aside, &data);
    }
    // The undamaged copy still starts: it was the damage that was refused.
    cluster.bring_up(broken).await;
    cluster.assert_agreement().await;
}

/// Whether a log names the file, or, for one that is gone or too short to be told from another, its directory.
fn names(log: &str, file: &Path, data: &Path) -> bool {
    let database = file.strip_prefix(data).unwrap().components().next().unwrap();
    let database = data.join(database);
    log.contains(&file.display().to_string()) || log.contains(&database.display().to_string())
}

fn oldest_segment(data: &Path) -> PathBuf {
    files(&data.join("log")).into_iter().filter(|path| path.extension().is_some_and(|ext| ext == "seg")).min().unwrap()
}

/// The largest file under `dir` whose name is one that is looked for.
fn largest(dir: &Path, is_wanted: impl Fn(&str) -> bool) -> PathBuf {
    let wanted = files(dir).into_iter().filter(|path| is_wanted(path.file_name().unwrap().to_str().unwrap()));
    // Not in snapshots: those are copies of what the state has.
    let wanted = wanted.filter(|path| !path.components().any(|part| part.as_os_str() == "snap"));
    wanted
        .max_by_key(|path| fs::metadata(path).unwrap().len())
        .unwrap_or_else(|| panic!("no such file under {}: {:#?}", dir.display(), files(dir)))
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

/// Copies a directory with all that is in it.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}
