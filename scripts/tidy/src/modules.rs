//! The modules of all crates, and where the paths in them lead.
//!
//! Owns the resolution of a path to the file that defines what it names, re-exports followed. A module and those within it are one thing:
//! what they import of each other is no import between files.

use std::collections::{BTreeMap, BTreeSet};

use crate::circles::Imports;
use crate::source::Source;

/// The modules of some crates. Each is a file.
#[derive(Debug, Default)]
pub struct Modules {
    list: Vec<Module>,
    /// The root of each library, by its name.
    libraries: BTreeMap<String, usize>,
}

#[derive(Debug)]
struct Module {
    file: String,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    source: Source,
}

/// The end of a path.
#[derive(Debug, Clone, Copy)]
enum Found {
    /// To this module.
    Module(usize),
    /// To something that this module defines.
    Item(usize),
}

/// Names that are being looked for, each with its module: imports may lead in a circle.
type Asked<'m> = Vec<(usize, &'m str)>;

impl Modules {
    /// Reads crates, each given by its name and its first file, from the texts of all files.
    pub fn read(crates: &[(String, String)], texts: &BTreeMap<String, String>) -> Self {
        let mut modules = Self::default();
        for (name, root) in crates {
            let home = root.rsplit_once('/').map_or("", |(home, _)| home);
            let id = modules.add(texts, root, None, home);
            if root.ends_with("/lib.rs") {
                modules.libraries.insert(name.clone(), id);
            }
        }
        modules
    }

    /// Adds a module and those within it, whose files lie in the directory `home`.
    fn add(&mut self, texts: &BTreeMap<String, String>, file: &str, parent: Option<usize>, home: &str) -> usize {
        let id = self.list.len();
        let source = Source::read(texts.get(file).map_or("", String::as_str));
        let names = source.modules.clone();
        self.list.push(Module { file: file.to_owned(), parent, children: BTreeMap::new(), source });
        for name in names {
            let files = [format!("{home}/{name}.rs"), format!("{home}/{name}/mod.rs")];
            // One that has its file elsewhere, by an attribute, is part of another program.
            let Some(found) = files.iter().find(|file| texts.contains_key(*file)) else { continue };
            let child = self.add(texts, found, Some(id), &format!("{home}/{name}"));
            self.list[id].children.insert(name, child);
        }
        id
    }

    /// The number of files.
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// The imports of each file from others.
    pub fn imports(&self) -> Imports<'_> {
        let mut imports = Imports::new();
        for (from, to) in self.links() {
            imports.entry(self.file(from)).or_default().insert(self.file(to));
        }
        imports
    }

    /// The imports between the modules within each module. Each stands for all that lies within it.
    pub fn imports_of_siblings(&self) -> BTreeMap<&str, Imports<'_>> {
        let mut rooms: BTreeMap<&str, Imports<'_>> = BTreeMap::new();
        for (from, to) in self.links() {
            let (from, to) = (self.way_to(from), self.way_to(to));
            let common = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
            // Nothing is common to two crates.
            let Some(parent) = common.checked_sub(1) else { continue };
            let room = rooms.entry(self.file(from[parent])).or_default();
            room.entry(self.file(from[common])).or_default().insert(self.file(to[common]));
        }
        rooms
    }

    /// All imports between two modules, unless one lies within the other.
    fn links(&self) -> BTreeSet<(usize, usize)> {
        let mut links = BTreeSet::new();
        for (from, module) in self.list.iter().enumerate() {
            for path in &module.source.paths {
                let Some(Found::Module(to) | Found::Item(to)) = self.resolve(from, path, &mut Asked::new()) else {
                    continue;
                };
                let is_within = self.way_to(from).contains(&to) || self.way_to(to).contains(&from);
                if !is_within {
                    links.insert((from, to));
                }
            }
        }
        links
    }

    fn file(&self, module: usize) -> &str {
        &self.list[module].file
    }

    /// The modules that a module lies in, the root of its crate first, and itself.
    fn way_to(&self, module: usize) -> Vec<usize> {
        let mut way = vec![module];
        while let Some(parent) = self.list[way[0]].parent {
            way.insert(0, parent);
        }
        way
    }

    /// Follows a path in a module. `None` if it leads out of all these crates.
    fn resolve<'m>(&'m self, from: usize, path: &'m [String], asked: &mut Asked<'m>) -> Option<Found> {
        let (first, rest) = path.split_first()?;
        let mut found = match (first.as_str(), self.libraries.get(first)) {
            ("crate", _) => Found::Module(self.way_to(from)[0]),
            ("self", _) => Found::Module(from),
            ("super", _) => Found::Module(self.list[from].parent?),
            (_, Some(library)) => Found::Module(*library),
            (name, None) => self.look_up(from, name, asked)?,
        };
        for name in rest {
            let Found::Module(module) = found else { break };
            found = match name.as_str() {
                "super" => Found::Module(self.list[module].parent?),
                name => match self.look_up(module, name, asked) {
                    Some(next) => next,
                    // A macro makes it, or it comes from without: it counts as part of the file that has it.
                    None if asked.is_empty() => Found::Item(module),
                    None => return None,
                },
            };
        }
        Some(found)
    }

    /// Looks up a name in a module.
    fn look_up<'m>(&'m self, module: usize, name: &'m str, asked: &mut Asked<'m>) -> Option<Found> {
        if asked.contains(&(module, name)) {
            return None;
        }
        let Module { children, source, .. } = &self.list[module];
        if let Some(child) = children.get(name) {
            return Some(Found::Module(*child));
        }
        if source.items.contains(name) {
            return Some(Found::Item(module));
        }
        asked.push((module, name));
        let mut found = source.imports.get(name).and_then(|path| self.resolve(module, path, asked));
        for path in &source.globs {
            if found.is_some() {
                break;
            }
            if let Some(Found::Module(glob)) = self.resolve(module, path, asked) {
                found = self.look_up(glob, name, asked);
            }
        }
        asked.pop();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The imports in crates of these files: `from -> to`.
    fn imports(files: &[(&str, &str)]) -> Vec<String> {
        let texts = files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect();
        let roots = files.iter().filter(|(file, _)| file.ends_with("/lib.rs"));
        let crates: Vec<(String, String)> =
            roots.map(|(file, _)| (file.trim_end_matches("/lib.rs").to_owned(), (*file).to_owned())).collect();
        let modules = Modules::read(&crates, &texts);
        let imports = modules.imports();
        imports.iter().flat_map(|(from, to)| to.iter().map(move |to| format!("{from} -> {to}"))).collect()
    }

    #[test]
    fn a_path_leads_through_all_re_exports_to_what_it_names() {
        let files = [
            ("low/lib.rs", "pub mod types; pub use types::*;"),
            ("low/types.rs", "mod row; pub use row::Row;"),
            ("low/types/row.rs", "pub struct Row;"),
            ("high/lib.rs", "mod a; mod b; mod c; use low::types;"),
            ("high/a.rs", "use crate::types::Row;"),
            ("high/b.rs", "fn f(_: low::Row) {}"),
            ("high/c.rs", "use super::a; fn f() { a::f(); crate::b::f() }"),
        ];
        let expected = [
            "high/a.rs -> low/types/row.rs",
            "high/b.rs -> low/types/row.rs",
            "high/c.rs -> high/a.rs",
            "high/c.rs -> high/b.rs",
            "high/lib.rs -> low/types.rs",
        ];
        assert_eq!(imports(&files), expected);
    }

    #[test]
    fn a_module_and_those_within_it_import_each_other_freely() {
        let files = [
            ("one/lib.rs", "mod a; pub use a::b::B;"),
            ("one/a.rs", "pub mod b; mod c; use b::B; use crate::B as Same;"),
            ("one/a/b.rs", "use super::A; use crate::a::c::C; pub struct B;"),
            ("one/a/c.rs", "use super::super::a; pub struct C;"),
        ];
        assert_eq!(imports(&files), ["one/a/b.rs -> one/a/c.rs"]);
    }

    #[test]
    fn names_that_lead_in_a_circle_lead_nowhere() {
        let files = [
            ("one/lib.rs", "mod a; mod b;"),
            ("one/a.rs", "pub use crate::b::*; fn f() { Nothing::new() }"),
            ("one/b.rs", "pub use crate::a::*;"),
        ];
        assert_eq!(imports(&files), ["one/a.rs -> one/b.rs", "one/b.rs -> one/a.rs"]);
    }
}
