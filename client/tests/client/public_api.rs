//! The public items of the two libraries, held to the copies that are kept of them.
//!
//! Owns how items are listed. What is exhaustive stands in one line, for any change
//! of it breaks who uses it; what may grow has a line for each part.

use std::collections::BTreeSet;
use std::path::Path;

use syn::{Attribute, Fields, ImplItem, Item, ItemImpl, Type};

use crate::library::{API, CLIENT, Library, is_public, name, text};

const WRITE_ENV: &str = "QUORATE_WRITE_PUBLIC_API";
/// Sources and kept copies, below the directory of the client.
const LIBRARIES: [(&str, &str); 2] = [(CLIENT, "public-api.txt"), (API, "api/public-api.txt")];

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
    write(
        "lib.rs",
        "mod inner;\npub use inner::{Open, Shut, Kind};\npub mod deep;\n#[doc(hidden)]\npub mod own { pub fn call() {} }\n\
         #[cfg(test)]\nmod tests {}\n",
    );
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

impl Library {
    fn lines(&self) -> BTreeSet<String> {
        let exported = self.exported();
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
}

fn may_grow(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| text(attribute).contains("non_exhaustive"))
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
