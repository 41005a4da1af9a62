//! Trees of files on a real disk.
//!
//! Owns reading and writing them. Knows nothing of what is in the files.

use std::fs;
use std::path::Path;

use super::disk::{Node, Tree};
use super::store::Fault;

/// Everything under a directory.
pub fn read(root: &Path) -> Result<Tree, Fault> {
    let mut tree = Tree::new();
    read_into(root, "", &mut tree).map_err(|error| format!("{}: {error}", root.display()))?;
    Ok(tree)
}

fn read_into(dir: &Path, prefix: &str, tree: &mut Tree) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        if entry.file_type()?.is_dir() {
            tree.insert(path.clone(), Node::Dir);
            read_into(&entry.path(), &path, tree)?;
        } else {
            tree.insert(path, Node::File(fs::read(entry.path())?));
        }
    }
    Ok(())
}

/// Writes a tree into a directory, which is made and must not be there.
pub fn write(tree: &Tree, root: &Path) -> Result<(), Fault> {
    let write = || {
        fs::create_dir(root)?;
        for (path, node) in tree {
            match node {
                Node::Dir => fs::create_dir(root.join(path))?,
                Node::File(content) => fs::write(root.join(path), content)?,
            }
        }
        Ok(())
    };
    write().map_err(|error: std::io::Error| format!("{}: {error}", root.display()))
}

/// Says where two trees differ; `None` where they do not.
pub fn difference(one: &Tree, other: &Tree) -> Option<String> {
    let missing = one.keys().find(|path| !other.contains_key(*path)).map(|path| format!("only the first has {path}"));
    let added = || other.keys().find(|path| !one.contains_key(*path)).map(|path| format!("only the second has {path}"));
    let changed = || one.iter().find(|(path, node)| other.get(*path) != Some(node)).map(|(path, _)| path.clone());
    missing.or_else(added).or_else(changed)
}
