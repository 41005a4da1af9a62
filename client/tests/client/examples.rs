//! Examples stand where a reader of the two libraries begins, and nowhere else: all of them are compiled with every run of the tests.
//!
//! Owns which items have one. The pages of modules, those of the crates among them, are left to whoever writes them.

use std::collections::BTreeSet;
use std::path::Path;

use syn::{Attribute, Expr, ExprLit, ImplItem, Item, Lit, Meta, TraitItem, Type};

use crate::library::{API, CLIENT, Library, attributes, is_public, name};

/// Main types and first calls of each library.
const BEGINNINGS: [(&str, &[&str]); 2] = [
    (
        CLIENT,
        &[
            "Access",
            "Barrier",
            "Bulk",
            "Campaign::campaign",
            "ChangeWhere",
            "Claim",
            "Claimed",
            "Client",
            "Client::backup",
            "Client::cas",
            "Client::get",
            "Client::get_and_lock_entry",
            "Client::insert_json",
            "Client::patch_json",
            "Client::put",
            "Client::put_json",
            "Client::request_outcome",
            "Client::update",
            "Client::wait_ready",
            "ClientBuilder",
            "Collection",
            "Election",
            "Error",
            "Find",
            "GaveUp",
            "History",
            "Latch",
            "Leadership",
            "List::pages",
            "Lock",
            "LockGuard",
            "Members",
            "Mirror",
            "MirrorChange",
            "NamedLock",
            "Observation",
            "Op",
            "Pages",
            "Quotas",
            "RequestId",
            "RetryPolicy",
            "ScheduleTask",
            "Scrape",
            "Sequence",
            "Session",
            "SessionById",
            "Task",
            "TaskError",
            "TaskQueue",
            "TaskWorker",
            "TestCluster",
            "Txn",
            "Value",
            "Watch",
            "WatchSetup",
            "Watched",
            "Write",
            "Write::request_id",
        ],
    ),
    (
        API,
        &["Cas", "Criterion", "EntryView", "FindRequest", "Op", "Problem", "TxnRequest", "WatchEvent", "WriteAnswer"],
    ),
];

#[test]
fn examples_stand_where_a_reader_begins_and_nowhere_else() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (root, beginnings) in BEGINNINGS {
        let found = with_example(&home.join(root));
        let listed: BTreeSet<String> = beginnings.iter().map(|&item| item.to_owned()).collect();
        let (without, beside): (Vec<_>, Vec<_>) =
            (listed.difference(&found).collect(), found.difference(&listed).collect());
        assert!(
            without.is_empty() && beside.is_empty(),
            "{root}: listed and without an example: {without:?}; with one and not listed: {beside:?}"
        );
    }
}

#[test]
fn an_example_is_found_on_a_public_item_and_on_its_parts() {
    let home = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| std::fs::write(home.path().join(name), text).expect("written");
    write("lib.rs", "mod inner;\npub use inner::{Shown, Bare, Does};\n/// ```\n/// ```\npub const N: u8 = 1;\n");
    write(
        "inner.rs",
        "/// Text.\n///\n/// ```no_run\n/// ```\npub struct Shown { pub a: u8 }\n/// Says ``` in a line.\npub enum Bare { One }\n\
         /// ```\n/// ```\nstruct Hidden;\n\
         impl Shown { pub fn bare(&self) {}\n/// ```\n/// ```\nfn hidden(&self) {}\n/// ```\n/// ```\npub fn shown(&self) {} }\n\
         impl Hidden {\n/// ```\n/// ```\npub fn nor_this(&self) {} }\n\
         pub trait Does {\n/// ```\n/// ```\nfn it(&self); }\n",
    );
    let expected = ["Does::it", "N", "Shown", "Shown::shown"];
    assert_eq!(with_example(&home.path().join("lib.rs")), BTreeSet::from(expected.map(str::to_owned)));
}

/// Public items with an example, and parts of such as `Item::part`.
fn with_example(root: &Path) -> BTreeSet<String> {
    let library = Library::read(root);
    let exported: Vec<&Item> = library.exported().into_iter().map(|(_, item, _)| item).collect();
    let names: BTreeSet<String> = exported.iter().filter_map(|item| name(item)).collect();
    let mut found = BTreeSet::new();
    for item in library.modules.values().flatten() {
        match item {
            Item::Impl(item) => found.extend(methods(item, &names)),
            item if exported.iter().any(|exported| std::ptr::eq(*exported, item)) => found.extend(named(item)),
            _ => {}
        }
    }
    found
}

/// The item and its parts, as far as they have an example. Names that come from another library are passed over.
fn named(item: &Item) -> Vec<String> {
    let Some(own) = name(item) else { return Vec::new() };
    let mut found = Vec::new();
    if has_example(attributes(item)) {
        found.push(own.clone());
    }
    if let Item::Trait(item) = item {
        for part in &item.items {
            if let TraitItem::Fn(function) = part
                && has_example(&function.attrs)
            {
                found.push(format!("{own}::{}", function.sig.ident));
            }
        }
    }
    found
}

/// Methods of a public type, as far as they have an example.
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
    let parts = item.items.iter().filter_map(part).filter(|(_, has_example)| *has_example);
    parts.map(|(name, _)| format!("{own}::{name}")).collect()
}

/// Whether the documentation has lines of code.
fn has_example(attributes: &[Attribute]) -> bool {
    let text = |attribute: &Attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    };
    attributes.iter().filter_map(text).any(|text| text.lines().any(|line| line.trim().starts_with("```")))
}
