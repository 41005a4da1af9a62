//! Every public item of the two libraries shows in an example how it is used.
//!
//! Owns which items need one: functions, methods, constants, types and traits. Fields and variants stand in the examples of their types.

use std::collections::BTreeSet;
use std::path::Path;

use syn::{Attribute, Expr, ExprLit, ImplItem, Item, Lit, Meta, TraitItem, Type};

use crate::library::{API, CLIENT, Library, attributes, is_public, name};

const HEADING: &str = "# Examples";

#[test]
fn every_public_item_has_an_example() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let without: Vec<_> = [CLIENT, API].into_iter().flat_map(|root| without_example(home, root)).collect();
    let count = without.len();
    assert!(
        without.is_empty(),
        "{count} public items have no `{HEADING}` in their documentation:\n{}",
        without.join("\n")
    );
}

#[test]
fn what_has_no_example_is_named_with_its_place() {
    let home = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| std::fs::write(home.path().join(name), text).expect("written");
    write("lib.rs", "mod inner;\npub use inner::{Shown, Bare, Does};\n/// # Examples\npub const N: u8 = 1;\n");
    write(
        "inner.rs",
        "/// Text.\n///\n/// # Examples\npub struct Shown { pub a: u8 }\n/// Says `# Examples` only.\npub enum Bare { One }\nstruct Hidden;\n\
         impl Shown { pub fn bare(&self) {} fn hidden(&self) {}\n/// # Examples\npub fn shown(&self) {} }\n\
         impl Hidden { pub fn nor_this(&self) {} }\nimpl Clone for Shown { fn clone(&self) -> Self { todo!() } }\n\
         /// # Examples\npub trait Does { fn it(&self); }\n",
    );
    let expected = ["inner.rs: Bare", "inner.rs: Does::it", "inner.rs: Shown::bare"];
    assert_eq!(without_example(home.path(), "lib.rs"), expected.map(str::to_owned));
}

/// Items without an example, each with its file.
fn without_example(home: &Path, root: &str) -> Vec<String> {
    let library = Library::read(&home.join(root));
    let exported: Vec<&Item> = library.exported().into_iter().map(|(_, item, _)| item).collect();
    let names: BTreeSet<String> = exported.iter().filter_map(|item| name(item)).collect();
    let mut without = Vec::new();
    for (path, items) in &library.modules {
        let file = file(root, path);
        let mut found = Vec::new();
        for item in items {
            match item {
                Item::Impl(item) => found.extend(methods(item, &names)),
                // Of another library.
                Item::Use(_) => {}
                item if exported.iter().any(|exported| std::ptr::eq(*exported, item)) => found.extend(named(item)),
                _ => {}
            }
        }
        without.extend(found.into_iter().map(|item| format!("{file}: {item}")));
    }
    without.sort();
    without
}

/// The file of a module.
fn file(root: &str, path: &[String]) -> String {
    let directory = root.trim_end_matches("lib.rs");
    if path.is_empty() { root.to_owned() } else { format!("{directory}{}.rs", path.join("/")) }
}

/// The item and its parts, as far as they have no example.
fn named(item: &Item) -> Vec<String> {
    let Some(own) = name(item) else { return Vec::new() };
    let mut without = Vec::new();
    if !has_example(attributes(item)) {
        without.push(own.clone());
    }
    if let Item::Trait(item) = item {
        for part in &item.items {
            if let TraitItem::Fn(function) = part
                && !has_example(&function.attrs)
            {
                without.push(format!("{own}::{}", function.sig.ident));
            }
        }
    }
    without
}

/// Methods of a public type, as far as they have no example.
fn methods(item: &syn::ItemImpl, names: &BTreeSet<String>) -> Vec<String> {
    let Type::Path(own) = &*item.self_ty else { return Vec::new() };
    let own = own.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
    if item.trait_.is_some() || !names.contains(&own) {
        return Vec::new();
    }
    let part = |part: &ImplItem| match part {
        ImplItem::Fn(function) if is_public(&function.vis) => {
            Some((function.sig.ident.to_string(), has_example(&function.attrs)))
        }
        ImplItem::Const(constant) if is_public(&constant.vis) => {
            Some((constant.ident.to_string(), has_example(&constant.attrs)))
        }
        _ => None,
    };
    let parts = item.items.iter().filter_map(part).filter(|(_, has_example)| !has_example);
    parts.map(|(name, _)| format!("{own}::{name}")).collect()
}

/// Whether a line of the documentation is the heading.
fn has_example(attributes: &[Attribute]) -> bool {
    let line = |attribute: &Attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    };
    attributes.iter().filter_map(line).any(|text| text.lines().any(|line| line.trim() == HEADING))
}
