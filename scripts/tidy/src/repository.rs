//! The files of this repository.
//!
//! Owns which crates there are, and reading them. Never changes anything.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The crates of the workspace, and the texts of their files by their paths from the root.
#[derive(Debug, Default)]
pub struct Repository {
    /// The name and the first file of each library and program.
    pub crates: Vec<(String, String)>,
    /// The files below `src` of all packages.
    pub texts: BTreeMap<String, String>,
}

/// The top of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

impl Repository {
    /// Reads all packages of the workspace.
    ///
    /// # Panics
    /// A file cannot be read, or a manifest has another form than the others.
    pub fn read() -> Self {
        let mut repository = Self::default();
        let manifest = text(&root().join("Cargo.toml"));
        let (_, members) = manifest.split_once("members = [").expect("the workspace lists its members");
        let (members, _) = members.split_once(']').expect("the list ends");
        for package in members.split('"').skip(1).step_by(2) {
            repository.add(package);
        }
        repository
    }

    fn add(&mut self, package: &str) {
        let manifest = text(&root().join(package).join("Cargo.toml"));
        let name = manifest.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
        let name = name.expect("a package has a name").replace('-', "_");
        let sources = format!("{package}/src");
        for file in rust_files(&sources) {
            let below = &file[sources.len() + 1..];
            let is_program = below
                .strip_prefix("bin/")
                .is_some_and(|program| !program.contains('/') || program.ends_with("/main.rs"));
            if below == "lib.rs" || below == "main.rs" || is_program {
                self.crates.push((name.clone(), file.clone()));
            }
            self.texts.insert(file.clone(), text(&root().join(&file)));
        }
    }
}

/// All files of Rust below a directory, by their paths from the root.
fn rust_files(directory: &str) -> Vec<String> {
    let mut files = Vec::new();
    let entries = fs::read_dir(root().join(directory)).unwrap_or_else(|error| panic!("{directory}: {error}"));
    for entry in entries {
        let entry = entry.expect("an entry of a directory");
        let path = format!("{directory}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            files.append(&mut rust_files(&path));
        } else if path.ends_with(".rs") {
            files.push(path);
        }
    }
    files
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
