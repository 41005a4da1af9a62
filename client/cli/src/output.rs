//! What commands print on standard output: readable lines, or the API's own answers in one of the other forms.

use std::cell::RefCell;
use std::io::{IsTerminal, Write};
use std::time::Duration;

use quorate_client::Pages;
use quorate_client::api::{ContentType, EntryView, WriteAnswer};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::fail::Failed;
use crate::form::Form;
use crate::pretty::compact;
use crate::table::{self, Columns};
use crate::tree::Node;
use crate::{cas_text, yaml};

/// Writes a line. An error means that nobody reads it any more.
pub fn line(text: impl AsRef<str>) -> Result<(), Failed> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_ref().as_bytes())?;
    out.write_all(b"\n")?;
    Ok(())
}

/// Writes bytes as they are.
pub fn raw(bytes: &[u8]) -> Result<(), Failed> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()?;
    Ok(())
}

thread_local! {
    /// What was printed in columns, so that what follows stands under the same heading.
    static COLUMNS: RefCell<Columns> = RefCell::default();
}

/// Writes an answer in a form for programs.
pub fn show<T: Serialize>(form: Form, value: &T) -> Result<(), Failed> {
    let no_json = |error: serde_json::Error| Failed::other(format!("the answer has no JSON: {error}"));
    match form {
        Form::Json | Form::Text => line(serde_json::to_string(value).map_err(no_json)?),
        Form::Yaml => raw(format!("---\n{}", yaml::document(&Node::of(value).map_err(no_json)?)).as_bytes()),
        Form::Table => {
            let node = Node::of(value).map_err(no_json)?;
            match table::rows(&node) {
                Some(rows) => columns(rows),
                None => table::fields(&node).into_iter().try_for_each(line),
            }
        }
    }
}

/// Writes one of many that come one by one.
pub fn item<T: Serialize>(form: Form, value: &T) -> Result<(), Failed> {
    if form != Form::Table {
        return show(form, value);
    }
    let node = Node::of(value).map_err(|error| Failed::other(format!("the answer has no JSON: {error}")))?;
    columns(&[node])
}

/// Writes some of many that come page by page.
pub fn items<T: Serialize>(form: Form, values: &[T]) -> Result<(), Failed> {
    if form != Form::Table {
        return values.iter().try_for_each(|value| show(form, value));
    }
    let nodes: Result<Vec<_>, _> = values.iter().map(Node::of).collect();
    columns(&nodes.map_err(|error| Failed::other(format!("the answer has no JSON: {error}")))?)
}

fn columns(rows: &[Node]) -> Result<(), Failed> {
    let lines = COLUMNS.with_borrow_mut(|columns| columns.lines(rows));
    lines.into_iter().try_for_each(line)
}

/// An entry: its value as it is stored, and what is known of it in the last line, where people read. In a pipe the value is all.
pub fn entry(entry: &EntryView) -> Result<(), Failed> {
    line(entry.value.as_ref().map_or_else(|| value(entry), |json| json.0.get().to_owned()))?;
    if std::io::stdout().is_terminal() { facts(entry) } else { Ok(()) }
}

/// An entry, with what is known of it wherever that is read.
pub fn entry_with_facts(entry: &EntryView) -> Result<(), Failed> {
    line(value(entry))?;
    facts(entry)
}

fn facts(entry: &EntryView) -> Result<(), Failed> {
    let mut facts = vec![format!("cas {}", cas_text::shown(entry.cas, "none (locked)"))];
    facts.push(format!("version {}", entry.version));
    facts.push(format!("created at revision {}", entry.create_revision));
    facts.push(format!("changed at {}", entry.mod_revision));
    facts.extend(entry.ttl_ms.map(|ttl| format!("expires in {}", millis(ttl))));
    facts.extend(entry.lock_ms.map(|left| format!("locked for {}", millis(left))));
    line(format!("  {}", facts.join(", ")))
}

/// The value in one line.
pub fn value(entry: &EntryView) -> String {
    match (&entry.value, &entry.value_base64, entry.content_type) {
        (Some(json), _, _) => compact(json.0.get()),
        (None, Some(base64), _) => format!("base64:{base64}"),
        (None, None, ContentType::Json) => "(json)".to_owned(),
        (None, None, _) => "(bytes)".to_owned(),
    }
}

/// What a write did.
pub fn written(answer: &WriteAnswer, verb: &str) -> Result<(), Failed> {
    let mut facts = Vec::new();
    facts.extend(answer.cas.as_ref().map(|cas| format!("cas {cas}")));
    facts.extend(answer.version.map(|version| format!("version {version}")));
    facts.push(format!("revision {}", answer.revision));
    facts.extend(answer.ttl_ms.map(|ttl| format!("expires in {}", millis(ttl))));
    facts.extend(answer.lock_ms.map(|left| format!("locked for {}", millis(left))));
    facts.extend(answer.replayed.then(|| "done by an earlier try".to_owned()));
    let verb = if answer.dry_run { format!("dry run, nothing {verb}") } else { verb.to_owned() };
    line(format!("{verb}: {}  {}", answer.key, facts.join(", ")))?;
    match &answer.prev {
        Some(prev) => line(format!("  before: {}  cas {}", value(prev), cas_text::shown(prev.cas, "none"))),
        None => Ok(()),
    }
}

/// What was done, with what is to be said beside it.
pub fn told(facts: String, dry_run: bool, replayed: bool) -> String {
    let before = if dry_run { "dry run, nothing done: " } else { "" };
    let after = if replayed { ", done by an earlier try" } else { "" };
    format!("{before}{facts}{after}")
}

/// The answer to a change: as JSON, or what was done in one line.
pub fn done<T: Serialize>(form: Form, answer: &T, replayed: bool, facts: String) -> Result<(), Failed> {
    self::answer(form, answer, || told(facts, false, replayed))
}

/// An answer: as JSON, or as one line.
pub fn answer<T: Serialize>(form: Form, answer: &T, text: impl FnOnce() -> String) -> Result<(), Failed> {
    match form {
        Form::Text => line(text()),
        form => show(form, answer),
    }
}

/// Shows one page of a list: in a data form as the API answers it, so that an empty list is an answer too; else a line or a row for each item.
pub fn page<P: Serialize, T: Serialize>(
    form: Form,
    page: &P,
    all: &[T],
    text: impl Fn(&T) -> String,
) -> Result<(), Failed> {
    match form {
        Form::Text => all.iter().try_for_each(|one| line(text(one))),
        Form::Table => items(form, all),
        Form::Json | Form::Yaml => show(form, page),
    }
}

/// Shows all pages of a list, one after the other; `parts` are what stands on one, and where the next begins.
pub async fn pages<P: Serialize + DeserializeOwned, T: Serialize>(
    form: Form,
    pages: Pages<'_, P>,
    parts: impl Fn(&P) -> (&[T], Option<&str>),
    text: impl Fn(&T) -> String,
) -> Result<(), Failed> {
    let mut shown = pages.page().await?;
    loop {
        let (all, cursor) = parts(&shown);
        page(form, &shown, all, &text)?;
        let Some(cursor) = cursor else { return Ok(()) };
        shown = pages.page_after(cursor).await?;
    }
}

/// One of many that come one by one, or its line.
pub fn each<T: Serialize>(form: Form, one: &T, text: impl FnOnce() -> String) -> Result<(), Failed> {
    match form {
        Form::Text => line(text()),
        form => item(form, one),
    }
}

/// `1 slot`, `2 slots`.
pub fn count(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

/// A session, and whose it is.
pub fn session(id: &str, owner: &str) -> String {
    if owner.is_empty() { format!("session {id}") } else { format!("session {id} ({owner})") }
}

/// A time as people read it.
pub fn duration(time: Duration) -> String {
    millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// Milliseconds as people read them.
pub fn millis(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis}ms"),
        1_000..60_000 => format!("{}.{}s", millis / 1_000, millis % 1_000 / 100),
        60_000..3_600_000 => format!("{}m{}s", millis / 60_000, millis % 60_000 / 1_000),
        _ => format!("{}h{}m", millis / 3_600_000, millis % 3_600_000 / 60_000),
    }
}

/// Bytes as people read them.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut size = bytes as f64;
    let mut unit = "B";
    for next in UNITS {
        if size < 1024.0 {
            break;
        }
        (size, unit) = (size / 1024.0, next);
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{size:.1} {unit}") }
}

/// Rows in columns as wide as they need; the first row is the heading.
pub fn table(rows: &[Vec<String>]) -> Result<(), Failed> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        line(cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}
