//! `quorate edit`: a value in the editor, saved on the cas that was read.
//!
//! Owns the text: it stays in its file until it is saved or was not changed. Where somebody else was faster, both changes are put
//! together and shown again; nothing is saved that was not seen.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use quorate_client::Value;
use quorate_client::api::{ContentType, EntryView, Name};
use serde_json::value::RawValue;

use crate::fail::Failed;
use crate::fence::Fence;
use crate::merge::{Merged, merge};
use crate::pretty::{differences, pretty};
use crate::tree::Node;
use crate::{Context, parse, rewrite};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The editor is that of VISUAL, else of EDITOR, else vi. What is saved unchanged is not written. Where the entry changed meanwhile, both \
changes are put together, and the editor shows that again, with what differs above it. Whatever goes wrong, the text stays in a file, \
which is named. Session and time to live stay.

Examples:
  quorate edit config/limits
  quorate edit motd --create")]
pub struct Args {
    /// Which entry.
    #[arg(value_parser = parse::name)]
    key: Name,
    /// Begin with an empty text where there is no such entry.
    #[arg(long)]
    create: bool,
    #[command(flatten)]
    fence: Fence,
}

pub async fn run(context: &Context, args: Args) -> Result<(), Failed> {
    let entry = context.client.get(&args.key).await?;
    if entry.is_none() && !args.create {
        return Err(Failed::not_found(format!("there is no entry `{}`; --create makes one", args.key)));
    }
    let draft = Draft::new(&args.key, entry.as_ref())?;
    match save(context, &args, entry, &draft).await {
        Ok(()) => Ok(()),
        Err(failed) if draft.is_kept() => {
            say!("your text is in {}", draft.path.display());
            Err(failed)
        }
        Err(failed) => Err(failed),
    }
}

async fn save(context: &Context, args: &Args, mut read: Option<EntryView>, draft: &Draft) -> Result<(), Failed> {
    let mut shown = text_of(read.as_ref())?;
    for round in 0.. {
        draft.write(&shown)?;
        edit(&draft.path)?;
        let saved = draft.read()?;
        if saved == shown && round > 0 {
            return Err(Failed::condition(format!("given up: `{}` is as the others left it", args.key)));
        }
        if saved == shown {
            draft.discard();
            return rewrite::tell_unchanged(context, &args.key);
        }
        // At first there are none, and what looks like one is of the value.
        let ours = if round > 0 { without_notes(&saved) } else { &saved };
        let value = value(read.as_ref(), ours)?;
        let write = rewrite::on(context, &args.key, read.as_ref(), value, &args.fence)?;
        let refused = match write.await {
            Ok(answer) => {
                draft.discard();
                return rewrite::tell(context, &answer);
            }
            Err(error) => error,
        };
        let now = rewrite::current(context, &args.key, refused).await?;
        shown = put_together(read.as_ref(), ours, now.as_ref())?;
        read = now;
    }
    unreachable!("only what is in the loop ends it")
}

/// What the editor begins with.
fn text_of(entry: Option<&EntryView>) -> Result<String, Failed> {
    let text = String::from_utf8(rewrite::bytes(entry)?);
    let text =
        text.map_err(|_| Failed::usage("the value is no text; `quorate get --raw` and `quorate put @FILE --bytes`"))?;
    Ok(if is_json(entry) { pretty(&text) } else { text })
}

fn is_json(entry: Option<&EntryView>) -> bool {
    entry.is_none_or(|entry| entry.content_type == ContentType::Json)
}

fn value(read: Option<&EntryView>, text: &str) -> Result<Value, Failed> {
    if !is_json(read) {
        return Ok(Value::bytes(text.as_bytes().to_vec()));
    }
    match serde_json::from_str::<&RawValue>(text) {
        Ok(json) => Ok(Value::json_text(json.get().to_owned())),
        Err(error) => Err(Failed::usage(format!("what was saved is not JSON: {error}"))),
    }
}

const NOTE: char = '#';

/// No JSON begins with a note.
fn without_notes(text: &str) -> &str {
    let mut rest = text;
    while rest.starts_with(NOTE) {
        rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
    }
    rest
}

/// Both changes of what was read, with notes above.
fn put_together(read: Option<&EntryView>, ours: &str, now: Option<&EntryView>) -> Result<String, Failed> {
    let (before, theirs) = (text_of(read)?, text_of(now)?);
    let changed = differences(&before, &theirs);
    if !is_json(read) || !is_json(now) {
        let shown = changed.join("\n");
        return Err(Failed::condition(format!("the entry changed meanwhile, as follows; edit it again\n{shown}")));
    }
    let node = |text: &str| {
        let raw = serde_json::from_str::<&RawValue>(text).or_else(|_| serde_json::from_str("null"));
        raw.and_then(|raw| Node::of(&raw)).map_err(|error| Failed::other(format!("a value has no JSON: {error}")))
    };
    let Merged { node, conflicts } = merge(&node(&before)?, &node(ours)?, &node(&theirs)?);
    let mut notes =
        vec!["The entry changed meanwhile. Both changes are put together below. These notes are not saved.".to_owned()];
    notes.push("To save it, remove a note or change the text. To give up, leave the file as it is.".to_owned());
    notes.push("What the others changed:".to_owned());
    notes.extend(changed);
    notes.extend(conflicts.iter().map(|path| format!("Both changed {path}; yours stands below.")));
    let notes: String = notes.iter().map(|note| format!("{NOTE} {note}\n")).collect();
    Ok(notes + &pretty(&node.json()))
}

/// The text while it is edited.
struct Draft {
    path: PathBuf,
}

impl Draft {
    fn new(key: &Name, entry: Option<&EntryView>) -> Result<Self, Failed> {
        let end = if is_json(entry) { "json" } else { "txt" };
        let name: String = key
            .to_string()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' })
            .take(40)
            .collect();
        let path = std::env::temp_dir().join(format!("quorate-{name}-{:08x}.{end}", rand::random::<u32>()));
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        made.map_err(|error| Failed::other(format!("cannot write {}: {error}", path.display())))?;
        Ok(Self { path })
    }

    fn write(&self, text: &str) -> Result<(), Failed> {
        let opened = OpenOptions::new().write(true).truncate(true).open(&self.path);
        let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| Failed::other(format!("cannot write {}: {error}", self.path.display())))
    }

    fn read(&self) -> Result<String, Failed> {
        let read = fs::read_to_string(&self.path);
        read.map_err(|error| Failed::other(format!("cannot read {}: {error}", self.path.display())))
    }

    fn discard(&self) {
        // What is left is a file too many, and no text is lost.
        let _left = fs::remove_file(&self.path);
    }

    fn is_kept(&self) -> bool {
        self.path.exists()
    }
}

fn edit(path: &Path) -> Result<(), Failed> {
    let set = |name| std::env::var(name).ok().filter(|editor| !editor.trim().is_empty());
    let editor = set("VISUAL").or_else(|| set("EDITOR")).unwrap_or_else(|| "vi".to_owned());
    // An editor may have arguments.
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &format!("{editor} \"$1\""), "sh"]).arg(path);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failed::other(format!("`{editor}` ended with {status}; nothing was written"))),
        Err(error) => Err(Failed::other(format!("cannot run `{editor}`: {error}"))),
    }
}
