//! The rules that this repository holds itself to.

use std::collections::BTreeSet;
use std::fs;

use quorate_tidy::{Imports, Modules, Repository, circles, root};

/// There are more files than this: a test that sees fewer did not look at all of them.
const FILES_MIN: usize = 700;
/// The same of imports.
const IMPORTS_MIN: usize = 4_000;

/// Directories of names in `ARCHITECTURE.md` that do not begin at the root: the way of a CAS and the table of the way in have such.
const HOMES: [&str; 2] = ["node/core/src/", "node/replica/src/"];

/// The graph of all files.
fn modules() -> Modules {
    let repository = Repository::read();
    let modules = Modules::read(&repository.crates, &repository.texts);
    let (files, imports) = (modules.count(), modules.imports().values().map(BTreeSet::len).sum::<usize>());
    println!("{files} files, {imports} imports");
    assert!(files >= FILES_MIN && imports >= IMPORTS_MIN, "only {files} files with {imports} imports were seen");
    modules
}

/// The imports within a circle, each in a line of its own.
fn shown(circle: &BTreeSet<&str>, imports: &Imports<'_>) -> String {
    let mut lines = Vec::new();
    for (from, to) in imports.iter().filter(|(from, _)| circle.contains(*from)) {
        lines.extend(to.intersection(circle).map(|to| format!("    {from} imports {to}\n")));
    }
    lines.concat()
}

#[test]
fn no_two_files_import_each_other() {
    let modules = modules();
    let imports = modules.imports();
    let circles: Vec<String> = circles(&imports).iter().map(|circle| shown(circle, &imports)).collect();
    assert!(circles.is_empty(), "files import each other, directly or through others:\n{}", circles.join("\n"));
}

#[test]
fn no_two_modules_import_each_other() {
    let modules = modules();
    let rooms = modules.imports_of_siblings();
    let mut found = Vec::new();
    for imports in rooms.values() {
        found.extend(circles(imports).iter().map(|circle| shown(circle, imports)));
    }
    assert!(found.is_empty(), "modules import each other, those within them included:\n{}", found.join("\n"));
}

#[test]
fn architecture_names_what_exists() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the document");
    let (mut missing, mut count, mut last) = (Vec::new(), 0, String::new());
    for name in names(&text) {
        count += 1;
        // The last name may be its directory, or lie beside it.
        let home = last.trim_end_matches('/').rsplit_once('/').map_or(String::new(), |(home, _)| format!("{home}/"));
        let places = ["", HOMES[0], HOMES[1], &last, &home].map(|place| format!("{place}{name}"));
        match places.into_iter().find(|place| is_there(place)) {
            Some(place) => last = place,
            None => missing.push(name),
        }
    }
    println!("{count} names of files and directories");
    assert!(count >= 50, "only {count} names of files and directories were seen");
    assert!(missing.is_empty(), "ARCHITECTURE.md names what does not exist: {missing:?}");
}

/// The files and directories that a document names, in its order.
fn names(document: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_picture = false;
    for line in document.lines() {
        if line.starts_with("```") {
            is_picture = !is_picture;
        } else if !is_picture {
            names.extend(line.split('`').skip(1).step_by(2).filter(|text| is_path(text)).flat_map(alternatives));
        }
    }
    names
}

fn is_path(text: &str) -> bool {
    let is_of_path = |character: char| character.is_ascii_alphanumeric() || "_.-/{},*".contains(character);
    let is_file = [".rs", ".md", ".json", ".txt"].iter().any(|end| text.ends_with(end));
    text.chars().all(is_of_path) && !text.starts_with('/') && (text.contains('/') || is_file)
}

/// The names that `a/{b,c}` stands for.
fn alternatives(text: &str) -> Vec<String> {
    let Some((before, rest)) = text.split_once('{') else { return vec![text.to_owned()] };
    let (list, after) = rest.split_once('}').expect("the list ends");
    list.split(',').map(|part| format!("{before}{part}{after}")).collect()
}

/// Whether there is such a file or directory; with a star at its end, one that begins so.
fn is_there(path: &str) -> bool {
    let Some(start) = path.strip_suffix('*') else { return root().join(path).exists() };
    let (directory, start) = start.rsplit_once('/').unwrap_or(("", start));
    let Ok(entries) = fs::read_dir(root().join(directory)) else { return false };
    entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with(start))
}
