//! A library as its sources have it: its modules, and what they show to others.
//!
//! Owns how sources are read and uses are followed, so that any toolchain will do. What is checked of them is for its readers to say.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use quote::ToTokens;
use syn::{Attribute, Item, Meta, UseTree, Visibility};

/// The roots of the two libraries, below the directory of the client.
pub const CLIENT: &str = "src/lib.rs";
pub const API: &str = "api/src/lib.rs";

/// A module: its path, and what is in it.
pub type Modules = BTreeMap<Vec<String>, Vec<Item>>;

/// An item that others can name: what stands before its name, and its name where that is another.
pub type Exported<'l> = (String, &'l Item, Option<String>);

pub struct Library {
    pub modules: Modules,
}

impl Library {
    pub fn read(root: &Path) -> Self {
        let mut modules = Modules::new();
        let directory = root.parent().expect("a file is in a directory");
        read_module(root, directory, Vec::new(), &mut modules);
        Self { modules }
    }

    /// What others can name.
    pub fn exported(&self) -> Vec<Exported<'_>> {
        let mut exported = Vec::new();
        self.export(&[], "", &mut exported);
        exported
    }

    /// What a module shows to others.
    fn export<'l>(&'l self, path: &[String], prefix: &str, out: &mut Vec<Exported<'l>>) {
        for item in &self.modules[path] {
            match item {
                Item::Use(tree) if is_public(&tree.vis) => self.export_use(path, prefix, &tree.tree, out, item),
                Item::Mod(module) if is_public(&module.vis) && !module.attrs.iter().any(is_hidden) => {
                    let name = module.ident.to_string();
                    self.export(&[path, std::slice::from_ref(&name)].concat(), &format!("{prefix}{name}::"), out);
                }
                item if visibility(item).is_some_and(is_public) => out.push((prefix.to_owned(), item, None)),
                _ => {}
            }
        }
    }

    fn export_use<'l>(
        &'l self,
        path: &[String],
        prefix: &str,
        tree: &UseTree,
        out: &mut Vec<Exported<'l>>,
        whole: &'l Item,
    ) {
        match tree {
            UseTree::Path(step) => {
                let name = step.ident.to_string();
                let next = if name == "crate" { Vec::new() } else { [path, std::slice::from_ref(&name)].concat() };
                if name == "crate" || self.modules.contains_key(&next) {
                    self.export_use(&next, prefix, &step.tree, out, whole);
                } else {
                    // Of another library.
                    out.push((prefix.to_owned(), whole, None));
                }
            }
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.export_use(path, prefix, tree, out, whole))
            }
            UseTree::Glob(_) => self.export(path, prefix, out),
            UseTree::Name(used) => self.export_name(path, prefix, &used.ident.to_string(), None, out, whole),
            UseTree::Rename(used) => {
                let rename = Some(used.rename.to_string());
                self.export_name(path, prefix, &used.ident.to_string(), rename, out, whole);
            }
        }
    }

    fn export_name<'l>(
        &'l self,
        path: &[String],
        prefix: &str,
        wanted: &str,
        rename: Option<String>,
        out: &mut Vec<Exported<'l>>,
        whole: &'l Item,
    ) {
        let found = self.modules[path].iter().find(|item| name(item).as_deref() == Some(wanted));
        if let Some(item) = found {
            out.push((prefix.to_owned(), item, rename));
            return;
        }
        // It stands there by another use, or in another library.
        let mut through = Vec::new();
        for item in &self.modules[path] {
            if let Item::Use(used) = item
                && !std::ptr::eq(item, whole)
            {
                self.export_use(path, prefix, &used.tree, &mut through, item);
            }
        }
        match through.into_iter().find(|(_, item, _)| name(item).as_deref() == Some(wanted)) {
            Some(found) => out.push(found),
            None => out.push((prefix.to_owned(), whole, None)),
        }
    }
}

fn read_module(file: &Path, directory: &Path, path: Vec<String>, modules: &mut Modules) {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let parsed = syn::parse_file(&expanded(&text)).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    add_module(parsed.items, directory, path, modules);
}

/// The macro that makes most answers of the API.
const ANSWERS: &str = include_str!("../../api/src/answers.rs");

/// The text of a module, with each struct of `answers!` as that macro makes it.
fn expanded(text: &str) -> String {
    let (mut lines, mut inside) = (Vec::new(), false);
    for line in text.lines() {
        match (line, line.strip_prefix("    pub struct ").and_then(|rest| rest.split_once(": "))) {
            ("answers! {", _) => inside = true,
            ("}", _) if inside => inside = false,
            (_, Some((name, rest))) if inside => {
                let rest = rest.trim_end_matches(" {");
                let common = between(ANSWERS, "(@struct [", "=> {", "$($attributes)*");
                let fields = between(ANSWERS, &format!("(@{rest} "), "$($fields)*", "]);");
                lines.push(format!("{common} pub struct {name} {{ {fields}"));
            }
            _ => lines.push(line.to_owned()),
        }
    }
    lines.join("\n")
}

/// What stands between two texts, behind a third.
fn between<'t>(text: &'t str, behind: &str, start: &str, end: &str) -> &'t str {
    let found = text.split_once(behind).and_then(|(_, rest)| rest.split_once(start)?.1.split_once(end));
    found.unwrap_or_else(|| panic!("`{behind}`, `{start}` and `{end}` are not in\n{text}")).0
}

fn add_module(items: Vec<Item>, directory: &Path, path: Vec<String>, modules: &mut Modules) {
    let items: Vec<_> = items.into_iter().filter(|item| !is_of_tests(item)).collect();
    for item in &items {
        let Item::Mod(module) = item else { continue };
        let name = module.ident.to_string();
        let (flat, own): (PathBuf, PathBuf) = (directory.join(format!("{name}.rs")), directory.join(&name));
        let below = [&path[..], &[name]].concat();
        match &module.content {
            Some((_, items)) => add_module(items.clone(), &own, below, modules),
            None => read_module(&if flat.exists() { flat } else { own.join("mod.rs") }, &own, below, modules),
        }
    }
    modules.insert(path, items);
}

pub fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        _ => &[],
    }
}

fn is_of_tests(item: &Item) -> bool {
    attributes(item).iter().any(|attribute| text(attribute).contains("cfg(test)"))
}

/// An item that is left out of the documentation is no promise to others.
fn is_hidden(attribute: &Attribute) -> bool {
    matches!(&attribute.meta, Meta::List(list) if list.path.is_ident("doc") && list.tokens.to_string() == "hidden")
}

pub fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

pub fn visibility(item: &Item) -> Option<&Visibility> {
    match item {
        Item::Const(item) => Some(&item.vis),
        Item::Enum(item) => Some(&item.vis),
        Item::Fn(item) => Some(&item.vis),
        Item::Struct(item) => Some(&item.vis),
        Item::Trait(item) => Some(&item.vis),
        Item::Type(item) => Some(&item.vis),
        _ => None,
    }
}

pub fn name(item: &Item) -> Option<String> {
    match item {
        Item::Const(item) => Some(item.ident.to_string()),
        Item::Enum(item) => Some(item.ident.to_string()),
        Item::Fn(item) => Some(item.sig.ident.to_string()),
        Item::Struct(item) => Some(item.ident.to_string()),
        Item::Trait(item) => Some(item.ident.to_string()),
        Item::Type(item) => Some(item.ident.to_string()),
        _ => None,
    }
}

/// Code in one line, spaced as it is written by hand.
pub fn text(tokens: &impl ToTokens) -> String {
    let mut text = tokens.to_token_stream().to_string().replace('\n', " ");
    for (loose, tight) in [
        (" ::", "::"),
        (":: ", "::"),
        (" <", "<"),
        ("< ", "<"),
        (" >", ">"),
        (" ,", ","),
        ("& ", "&"),
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        (" :", ":"),
        (" ?", "?"),
        (" ;", ";"),
        (" [", "["),
        ("[ ", "["),
        (" ]", "]"),
        ("# [", "#["),
        (" !", "!"),
        (",)", ")"),
        (",>", ">"),
        (", )", ")"),
    ] {
        text = text.replace(loose, tight);
    }
    text.replace("->(", "-> (").replace("(mut self", "(self")
}
