//! The public items of the two libraries, held to the copies that are kept of them.
//!
//! Owns how items are listed: from the sources, so that any toolchain will do. What is exhaustive stands in one line, for any change
//! of it breaks who uses it; what may grow has a line for each part.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use quote::ToTokens;
use syn::{Attribute, Fields, ImplItem, Item, ItemImpl, Type, UseTree, Visibility};

const WRITE_ENV: &str = "QUORATE_WRITE_PUBLIC_API";
/// Sources and kept copies, below the directory of the client.
const LIBRARIES: [(&str, &str); 2] = [("src/lib.rs", "public-api.txt"), ("api/src/lib.rs", "api/public-api.txt")];

#[test]
fn public_items_are_added_and_never_taken_away_or_changed() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (root, copy) in LIBRARIES {
        let (now, copy) = (Library::read(&home.join(root)).lines(), home.join(copy));
        if std::env::var_os(WRITE_ENV).is_some() {
            let text: String = now.iter().map(|line| format!("{line}\n")).collect();
            std::fs::write(&copy, text).expect("the copy can be written");
            continue;
        }
        let kept = std::fs::read_to_string(&copy).expect("there is a copy");
        let gone: Vec<_> = kept.lines().filter(|line| !now.contains(*line)).collect();
        assert!(
            gone.is_empty(),
            "{} public items of client/{root} are gone, or not what they were:\n{}\nWho uses them cannot upgrade. If that is meant, write \
             {} anew: {WRITE_ENV}=1 cargo test --workspace --test client public_items",
            gone.len(),
            gone.join("\n"),
            copy.display()
        );
    }
}

#[test]
fn a_listing_shows_what_others_can_call_and_nothing_else() {
    let home = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| std::fs::write(home.path().join(name), text).expect("written");
    write("lib.rs", "mod inner;\npub use inner::{Open, Shut, Kind};\npub mod deep;\n#[cfg(test)]\nmod tests {}\n");
    write(
        "inner.rs",
        "#[derive(Debug)]\n#[non_exhaustive]\npub struct Open { pub a: u8, b: u8 }\npub struct Shut { pub a: u8 }\n\
         #[cfg_attr(not(feature = \"x\"), non_exhaustive)]\npub enum Kind { One, Two { n: u8 } }\npub struct Hidden;\n\
         impl Open { pub fn get(mut self, by: &str) -> Option<u8> { None } fn not_this(&self) {} }\n\
         impl From<Shut> for Open { fn from(_: Shut) -> Self { todo!() } }\nimpl Hidden { pub fn nor_this() {} }\n",
    );
    write("deep.rs", "pub const N: u8 = 1;\npub fn call<T>(t: T) where T: Copy {}\n");
    let lines: Vec<_> = Library::read(&home.path().join("lib.rs")).lines().into_iter().collect();
    let expected = [
        "deep::const N: u8",
        "deep::fn call<T>(t: T) where T: Copy",
        "enum Kind",
        "impl Debug for Open",
        "impl From<Shut> for Open",
        "impl Open: fn get(self, by: &str) -> Option<u8>",
        "struct Open",
        "struct Shut { pub a: u8 }",
        "variant Kind::One",
        "variant Kind::Two { n: u8 }",
        "field Open.a: u8",
    ];
    let expected: BTreeSet<_> = expected.into_iter().map(str::to_owned).collect();
    assert_eq!(lines.into_iter().collect::<BTreeSet<_>>(), expected);
}

/// A module: its path, and what is in it.
type Modules = BTreeMap<Vec<String>, Vec<Item>>;

struct Library {
    modules: Modules,
}

impl Library {
    fn read(root: &Path) -> Self {
        let mut modules = Modules::new();
        let directory = root.parent().expect("a file is in a directory");
        read_module(root, directory, Vec::new(), &mut modules);
        Self { modules }
    }

    fn lines(&self) -> BTreeSet<String> {
        let mut exported = Vec::new();
        self.export(&[], "", &mut exported);
        let names: BTreeSet<String> = exported.iter().filter_map(|(_, item, _)| name(item)).collect();
        let mut lines = BTreeSet::new();
        for (prefix, item, rename) in &exported {
            show(prefix, item, rename.as_deref(), &mut lines);
        }
        for item in self.modules.values().flatten() {
            if let Item::Impl(item) = item {
                show_impl(item, &names, &mut lines);
            }
        }
        lines
    }

    /// What a module shows to others, with what stands before its name there, and its name where that is another.
    fn export<'l>(&'l self, path: &[String], prefix: &str, out: &mut Vec<(String, &'l Item, Option<String>)>) {
        for item in &self.modules[path] {
            match item {
                Item::Use(tree) if is_public(&tree.vis) => self.export_use(path, prefix, &tree.tree, out, item),
                Item::Mod(module) if is_public(&module.vis) => {
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
        out: &mut Vec<(String, &'l Item, Option<String>)>,
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
        out: &mut Vec<(String, &'l Item, Option<String>)>,
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
    let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    add_module(parsed.items, directory, path, modules);
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

fn attributes(item: &Item) -> &[Attribute] {
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

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn visibility(item: &Item) -> Option<&Visibility> {
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

fn name(item: &Item) -> Option<String> {
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

fn may_grow(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| text(attribute).contains("non_exhaustive"))
}

/// Code in one line, spaced as it is written by hand.
fn text(tokens: &impl ToTokens) -> String {
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

fn show(prefix: &str, item: &Item, rename: Option<&str>, lines: &mut BTreeSet<String>) {
    let named = |name: String| rename.map_or(name, str::to_owned);
    match item {
        Item::Const(item) => drop(lines.insert(format!("{prefix}const {}: {}", item.ident, text(&item.ty)))),
        Item::Fn(item) => drop(lines.insert(format!("{prefix}{}", text(&item.sig)))),
        Item::Type(item) => drop(lines.insert(format!("{prefix}type {} = {}", item.ident, text(&item.ty)))),
        Item::Use(item) => drop(lines.insert(format!("{prefix}{}", text(item).trim_start_matches("pub ")))),
        Item::Trait(item) => {
            let items: Vec<_> = item.items.iter().map(|item| text(&without_documentation(item))).collect();
            let header = format!("{prefix}trait {}{}: {}", item.ident, text(&item.generics), text(&item.supertraits));
            lines.insert(format!("{header} {{ {} }}", items.join(" ")));
        }
        Item::Struct(item) => {
            let name = named(item.ident.to_string());
            let header = format!("{prefix}struct {name}{}", text(&item.generics));
            show_derives(prefix, &name, &item.attrs, lines);
            let is_open = may_grow(&item.attrs) || item.fields.iter().any(|field| !is_public(&field.vis));
            if !is_open {
                lines.insert(format!("{header}{}", whole(&item.fields)));
                return;
            }
            lines.insert(header);
            for (number, field) in item.fields.iter().enumerate().filter(|(_, field)| is_public(&field.vis)) {
                let field_name = field.ident.as_ref().map_or_else(|| number.to_string(), ToString::to_string);
                lines.insert(format!("field {prefix}{name}.{field_name}: {}", text(&field.ty)));
            }
        }
        Item::Enum(item) => {
            let name = named(item.ident.to_string());
            let header = format!("{prefix}enum {name}{}", text(&item.generics));
            show_derives(prefix, &name, &item.attrs, lines);
            let variants = item.variants.iter().map(|variant| {
                let growing = if may_grow(&variant.attrs) { " .." } else { "" };
                (variant, format!("{}{}{growing}", variant.ident, whole(&variant.fields)))
            });
            if may_grow(&item.attrs) {
                lines.insert(header);
                lines.extend(variants.map(|(_, variant)| format!("variant {prefix}{name}::{variant}")));
            } else {
                let variants: Vec<_> = variants.map(|(_, variant)| variant).collect();
                lines.insert(format!("{header} {{ {} }}", variants.join(", ")));
            }
        }
        _ => {}
    }
}

/// All fields in one line.
fn whole(fields: &Fields) -> String {
    let of = |field: &syn::Field| {
        let (public, ty) = (if is_public(&field.vis) { "pub " } else { "" }, text(&field.ty));
        field.ident.as_ref().map_or_else(|| format!("{public}{ty}"), |name| format!("{public}{name}: {ty}"))
    };
    let all: Vec<_> = fields.iter().map(of).collect();
    match fields {
        Fields::Unit => String::new(),
        Fields::Unnamed(_) => format!("({})", all.join(", ")),
        Fields::Named(_) => format!(" {{ {} }}", all.join(", ")),
    }
}

fn show_derives(prefix: &str, name: &str, attributes: &[Attribute], lines: &mut BTreeSet<String>) {
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("derive")) {
        let text = text(attribute);
        let list = text.trim_start_matches("#[derive(").trim_end_matches(")]");
        for derived in list.split(',').map(str::trim).filter(|derived| !derived.is_empty()) {
            lines.insert(format!("{prefix}impl {} for {name}", derived.rsplit("::").next().unwrap_or(derived)));
        }
    }
}

fn without_documentation(item: &syn::TraitItem) -> syn::TraitItem {
    let mut item = item.clone();
    if let syn::TraitItem::Fn(function) = &mut item {
        function.attrs.clear();
        function.default = None;
    }
    item
}

fn show_impl(item: &ItemImpl, names: &BTreeSet<String>, lines: &mut BTreeSet<String>) {
    let (generics, of) = (text(&item.generics), text(&item.self_ty));
    let bounds = item.generics.where_clause.as_ref().map_or_else(String::new, |clause| format!(" {}", text(clause)));
    let mentions = |text: &str| text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| names.contains(word));
    if let Some((path, _)) = &item.trait_ {
        let of_trait = text(path);
        if !of_trait.contains("Drop") && (mentions(&of) || mentions(&of_trait)) {
            let types =
                item.items.iter().filter_map(associated_type).map(|item| format!(", {item}")).collect::<String>();
            lines.insert(format!("impl{generics} {of_trait} for {of}{bounds}{types}"));
        }
        return;
    }
    let Type::Path(own) = &*item.self_ty else { return };
    if !own.path.segments.last().is_some_and(|last| names.contains(&last.ident.to_string())) {
        return;
    }
    for part in &item.items {
        match part {
            ImplItem::Fn(function) if is_public(&function.vis) => {
                lines.insert(format!("impl{generics} {of}{bounds}: {}", text(&function.sig)));
            }
            ImplItem::Const(constant) if is_public(&constant.vis) => {
                lines.insert(format!("impl{generics} {of}: const {}: {}", constant.ident, text(&constant.ty)));
            }
            _ => {}
        }
    }
}

fn associated_type(item: &ImplItem) -> Option<String> {
    match item {
        ImplItem::Type(item) => Some(format!("{} = {}", item.ident, text(&item.ty))),
        _ => None,
    }
}
