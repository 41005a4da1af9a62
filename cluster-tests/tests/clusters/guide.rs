//! The examples of the README and of the guides and tutorials in `docs/`, run on real clusters.
//!
//! Owns what the blocks of a page mean: `sh` is run, `text` is what it prints (`…` for anything on the line), `rust` stands
//! in an example program of the client, which is run too. Never knows what an example is about.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use cluster_harness::{Cluster, Settings};

use crate::agents::TUTORIAL as AGENTS;

const GUIDE: &str = include_str!("../../../docs/guide.md");
const OPERATIONS: &str = include_str!("../../../docs/operations.md");
const README: &str = include_str!("../../../README.md");
/// The languages of clients, and their pages, whose examples their own tests run.
const CLIENTS: [(&str, &str); 3] = [
    ("python", include_str!("../../../sdk/python/README.md")),
    ("ts", include_str!("../../../sdk/typescript/README.md")),
    ("go", include_str!("../../../sdk/go/README.md")),
];
const CRON: &str = include_str!("../../../docs/tutorial-cron.md");
const CONFIG: &str = include_str!("../../../docs/tutorial-config.md");
/// The program in the README, after the line that says what it is.
const README_EXAMPLE: &str = include_str!("../../../client/examples/readme.rs");
const EXAMPLE: &str = include_str!("../../../client/examples/guide.rs");
/// The ports that the guide talks to, those of the local cluster.
const PORTS: [&str; 3] = ["7101", "7102", "7103"];
/// Seconds after which the shell, or the example program, is ended.
const SECONDS_MAX: &str = "60";

/// A block of a guide.
#[derive(Debug)]
pub struct Block {
    /// The guide's file.
    file: &'static str,
    pub language: &'static str,
    section: &'static str,
    /// Line of the guide where its text begins, from 1.
    line: usize,
    pub text: Vec<&'static str>,
}

impl Block {
    /// Where it is, for people.
    pub fn place(&self) -> String {
        format!("{}:{}, section `{}`", self.file, self.line, self.section)
    }
}

/// All blocks of a guide in order.
pub fn blocks(file: &'static str, guide: &'static str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let (mut section, mut open) = ("", false);
    for (line, number) in guide.lines().zip(1..) {
        match line.strip_prefix("```") {
            Some(_) if open => open = false,
            Some(language) => {
                open = true;
                blocks.push(Block { file, language, section, line: number + 1, text: Vec::new() });
            }
            None if open => blocks.last_mut().expect("a block is open").text.push(line),
            None => section = line.strip_prefix("## ").unwrap_or(section),
        }
    }
    assert!(!open, "the last block of the guide is not closed");
    blocks
}

/// A line that the shell prints after each block, with the number of the block and the exit code of its last command.
const MARK: &str = "=== end of block ";

/// All blocks as one script: what one sets, the next finds.
fn script(shell: &[&Block], addresses: &[String]) -> String {
    let mut script = String::from("exec 2>&1\n");
    for (number, block) in shell.iter().enumerate() {
        let text = with_ports(&block.text.join("\n"), addresses);
        // What is printed without an end of line must not swallow the mark.
        writeln!(script, "{text}\nprintf '\\n{MARK}{number} %s\\n' \"$?\"").expect("a string takes everything");
    }
    script
}

fn with_ports(text: &str, addresses: &[String]) -> String {
    PORTS.iter().zip(addresses).fold(text.to_owned(), |text, (port, address)| {
        text.replace(&format!("localhost:{port}"), address).replace(&format!("127.0.0.1:{port}"), address)
    })
}

/// What each block printed, with its exit code.
fn outputs(printed: &str, count: usize) -> Vec<(Vec<&str>, &str)> {
    let mut outputs = Vec::new();
    let mut rest = printed;
    for number in 0..count {
        let mark = format!("\n{MARK}{number} ");
        let Some((text, after)) = rest.split_once(&mark) else {
            panic!("the shell ended in block {number}; at last it printed:\n{rest}");
        };
        let (code, after) = after.split_once('\n').expect("the mark ends its line");
        outputs.push((text.lines().collect(), code));
        rest = after;
    }
    outputs
}

/// Whether a line is as the guide shows it; `…` stands for anything, also for nothing.
fn fits(shown: &str, line: &str) -> bool {
    let mut parts = shown.split('…');
    let first = parts.next().expect("split gives at least one part");
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let mut parts: Vec<_> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// What is wrong with the output of a block; the line that the guide shows is named.
pub fn compare(block: &Block, shown: Option<&Block>, output: &[&str], code: &str) -> Option<String> {
    let Some(shown) = shown else {
        return (code != "0").then(|| format!("{}: exit code {code}: {}", block.place(), output.join("\n")));
    };
    let lines = shown.text.len().max(output.len());
    let wrong = (0..lines).find(|at| match (shown.text.get(*at), output.get(*at)) {
        (Some(shown), Some(line)) => !fits(shown, line),
        _ => true,
    })?;
    let or_nothing = |line: Option<&&str>| line.map_or_else(|| "(nothing)".to_owned(), |line| (*line).to_owned());
    Some(format!(
        "{}:{}, section `{}`\n   shown: {}\n printed: {}",
        shown.file,
        shown.line + wrong,
        shown.section,
        or_nothing(shown.text.get(wrong)),
        or_nothing(output.get(wrong))
    ))
}

/// A program that cargo built beside this test: target/debug/deps/it-0123 → target/debug/NAME.
pub fn built(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    let path = test.ancestors().nth(2).expect("a test is two levels deep").join(name);
    assert!(path.is_file(), "there is no {}; run `cargo build --workspace --all-targets` first", path.display());
    path
}

/// A command that no variable of whoever runs the tests reaches.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("QUORATE_")) {
        command.env_remove(name);
    }
    command
}

/// Runs a program with the endpoints of the cluster; gives all that it prints.
async fn run(mut command: Command, endpoints: String) -> (bool, String) {
    command.env("QUORATE_ENDPOINTS", endpoints).env("LC_ALL", "C.UTF-8").env_remove("CURL_HOME");
    let done = tokio::task::spawn_blocking(move || command.output()).await.expect("the task ends");
    let done = done.unwrap_or_else(|error| panic!("cannot be run: {error}"));
    let text = [done.stdout, done.stderr].concat();
    (done.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// A program that is ended when it takes too long.
fn limited(program: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.arg(SECONDS_MAX).arg(program);
    command
}

fn addresses(cluster: &Cluster) -> Vec<String> {
    cluster.ids().into_iter().map(|id| cluster.client_address(id).to_string()).collect()
}

/// Runs the shell blocks of a guide on a cluster, and compares what they print.
async fn try_all(cluster: &Cluster, blocks: &[Block]) {
    let home = tempfile::tempdir().expect("a temporary directory");
    try_all_in(home.path(), cluster, blocks).await;
}

/// The same, in a directory.
async fn try_all_in(home: &Path, cluster: &Cluster, blocks: &[Block]) {
    let shell: Vec<_> = blocks.iter().filter(|block| block.language == "sh").collect();
    let addresses = addresses(cluster);
    let file = home.join("guide.sh");
    std::fs::write(&file, script(&shell, &addresses)).expect("the script can be written");
    let mut command = limited(Path::new("bash"));
    let path = std::env::var("PATH").expect("there is a PATH");
    let programs = built("quorate");
    let programs = programs.parent().expect("a program is in a directory").display();
    command.arg(&file).current_dir(home).env("PATH", format!("{programs}:{path}"));
    let (_, printed) = run(command, addresses.join(",")).await;
    let faults = outputs(&printed, shell.len()).into_iter().zip(&shell).filter_map(|((output, code), block)| {
        let at = blocks.iter().position(|other| other.line == block.line).expect("it is one of them");
        let shown = blocks.get(at + 1).filter(|next| next.language == "text");
        compare(block, shown, &output, code)
    });
    let faults: Vec<_> = faults.collect();
    assert!(faults.is_empty(), "{} examples do not do what they show:\n{}", faults.len(), faults.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_example_of_the_guide_does_what_it_shows() {
    let mut cluster = Cluster::start().await;
    try_all(&cluster, &blocks("docs/guide.md", GUIDE)).await;
    cluster.assert_agreement().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_example_of_the_operators_guide_does_what_it_shows() {
    // Where the shell is, so that the guide can say `archive`.
    let home = tempfile::tempdir().expect("a temporary directory");
    let archive = home.path().join("archive");
    let archive = archive.to_str().expect("a path of ours is text");
    let settings = Settings::default().flag("--archive", archive).flag("--archive-interval-ms", 100);
    let mut cluster = Cluster::start_with(settings).await;
    try_all_in(home.path(), &cluster, &blocks("docs/operations.md", OPERATIONS)).await;
    cluster.assert_agreement().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_example_of_the_readme_does_what_it_shows() {
    let mut cluster = Cluster::start().await;
    try_all(&cluster, &blocks("README.md", README)).await;
    cluster.assert_agreement().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_example_of_the_tutorials_does_what_it_shows() {
    for (file, tutorial) in [("docs/tutorial-cron.md", CRON), ("docs/tutorial-config.md", CONFIG)] {
        let mut cluster = Cluster::start().await;
        try_all(&cluster, &blocks(file, tutorial)).await;
        cluster.assert_agreement().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rust_examples_of_the_guide_run() {
    let mut cluster = Cluster::start().await;
    for name in ["guide", "config_push", "readme"] {
        let program = built(&format!("examples/{name}"));
        let (success, printed) = run(limited(&program), addresses(&cluster).join(",")).await;
        assert!(success, "client/examples/{name}.rs failed:\n{printed}");
    }
    cluster.assert_agreement().await;
}

#[test]
fn each_rust_block_of_the_guide_stands_in_the_program_that_is_run() {
    let program: Vec<_> = EXAMPLE.lines().map(str::trim).filter(|line| !line.starts_with("//!")).collect();
    let blocks = blocks("docs/guide.md", GUIDE);
    let rust: Vec<_> = blocks.iter().filter(|block| block.language == "rust").collect();
    assert!(!rust.is_empty(), "the guide has no example in Rust");
    for (number, block) in rust.iter().enumerate() {
        let text: Vec<_> = block.text.iter().map(|line| line.trim()).collect();
        let mut places = (0..program.len()).filter(|at| program[*at..].starts_with(&text));
        // What a block uses is in the block, or in the first one: nothing else stands before it.
        let at_head = |at: usize| match number {
            0 => program[..at].iter().all(|line| line.is_empty()),
            _ => {
                at > 0
                    && program[at - 1].starts_with("async fn ")
                    && program[at - 1].ends_with("(client: &Client) -> Outcome {")
            }
        };
        assert!(
            places.any(at_head),
            "{}: these lines do not stand at the head of a function of client/examples/guide.rs:\n{}",
            block.place(),
            text.join("\n")
        );
    }
}

#[test]
fn the_rust_of_the_readme_is_the_program_that_is_run() {
    let blocks = blocks("README.md", README);
    let rust: Vec<_> = blocks.iter().filter(|block| block.language == "rust").collect();
    let [block] = rust.as_slice() else { panic!("the README has {} examples in Rust, not one", rust.len()) };
    let program: Vec<_> = README_EXAMPLE.lines().skip_while(|line| !line.starts_with("use ")).collect();
    assert_eq!(block.text, program, "{} is not client/examples/readme.rs", block.place());
}

#[test]
fn the_readme_shows_lines_that_the_tests_of_each_client_run() {
    let blocks = blocks("README.md", README);
    for (language, page) in CLIENTS {
        let of_it: Vec<_> = blocks.iter().filter(|block| block.language == language).collect();
        let [block] = of_it.as_slice() else {
            panic!("the README has {} examples in {language}, not one", of_it.len())
        };
        let run: BTreeSet<_> = page.lines().map(str::trim).collect();
        let other: Vec<_> = block.text.iter().filter(|line| !run.contains(line.trim())).collect();
        assert!(other.is_empty(), "{}: not in the README of that client: {other:?}", block.place());
    }
}

#[test]
fn a_block_of_another_kind_or_an_output_without_its_commands_is_noticed() {
    let pages = [
        ("docs/guide.md", GUIDE),
        ("docs/operations.md", OPERATIONS),
        ("README.md", README),
        ("docs/tutorial-cron.md", CRON),
        ("docs/tutorial-config.md", CONFIG),
        ("docs/tutorial-agents.md", AGENTS),
    ];
    let blocks: Vec<_> = pages.into_iter().flat_map(|(file, page)| blocks(file, page)).collect();
    for (block, before) in blocks.iter().zip(std::iter::once(None).chain(blocks.iter().map(Some))) {
        // `console`, `ini`, `js` and `md` are only shown; the other languages have tests of their own.
        let known = ["sh", "text", "rust", "console", "ini", "js", "md", "json", "python", "ts", "go", "ann", "ben"];
        let known = known.contains(&block.language);
        assert!(known, "{}: what is a block `{}`?", block.place(), block.language);
        let follows = before.is_some_and(|before| ["sh", "ann", "ben"].contains(&before.language));
        assert!(block.language != "text" || follows, "{}: the output of what?", block.place());
    }
}

#[test]
fn a_shown_line_fits_only_what_it_leaves_open() {
    assert!(fits("cas …, version 1", "cas 17, version 1") && fits("…", "") && fits("same", "same"));
    assert!(fits("{…\"a\":1,…}", "{\"a\":1,\"b\":2}"));
    for line in ["cas 17, version 12", "as 17, version 1", "cas 17", ""] {
        assert!(!fits("cas …, version 1", line), "{line}");
    }
}
