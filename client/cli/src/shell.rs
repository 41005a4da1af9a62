//! `quorate shell`: one command after the other, with a history and completion.
//!
//! Owns the lines. Each is run as a program of its own, with what was said of the connection to this one.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command as Program;

use clap::Command;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{Context, Editor, Helper};

use crate::fail::Failed;
use crate::sys;
use crate::words::{self, Words};

/// Lines that are remembered.
const HISTORY_MAX: usize = 10_000;

/// Reads and runs lines until there are no more. `given` stands before each: what was said of the connection.
pub fn run(given: &[OsString], commands: Command) -> Result<(), Failed> {
    let cannot = |error: ReadlineError| Failed::other(format!("cannot read from the terminal: {error}"));
    let config =
        rustyline::Config::builder().max_history_size(HISTORY_MAX).map_err(cannot)?.auto_add_history(true).build();
    let mut editor = Editor::<Lines, DefaultHistory>::with_config(config).map_err(cannot)?;
    editor.set_helper(Some(Lines { commands }));
    let history = history();
    if let Some(path) = &history {
        // The first time there is none.
        let _none = editor.load_history(path);
    }
    // What is typed to end a command ends that, and not us.
    sys::pass_over_interrupts();
    loop {
        match editor.readline("quorate> ") {
            Ok(line) if is_end(&line) => break,
            Ok(line) => execute(given, &line),
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(cannot(error)),
        }
    }
    let Some(path) = history else { return Ok(()) };
    let kept = std::fs::create_dir_all(path.parent().unwrap_or(&path)).map_err(ReadlineError::from);
    if let Err(error) = kept.and_then(|()| editor.save_history(&path)) {
        say!("warning: {} was not written: {error}", path.display());
    }
    Ok(())
}

fn is_end(line: &str) -> bool {
    matches!(line.trim(), "exit" | "quit")
}

fn execute(given: &[OsString], line: &str) {
    let words = match words::split(line) {
        Ok(Words { end: Some(end), .. }) => {
            return say!("error: `{end}` is for a shell of the system; this one has commands of quorate only");
        }
        Ok(Words { words, end: None }) => words,
        Err(error) => return say!("error: {error}"),
    };
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => return,
        ["shell", ..] => return say!("error: this is one"),
        _ => {}
    }
    let words = words.iter().skip(usize::from(words[0] == "quorate"));
    // By our name: it says how it is used.
    match Program::new("/proc/self/exe").arg0("quorate").args(given).args(words).status() {
        Ok(status) if status.success() => {}
        // It said why.
        Ok(status) => say!("({status})"),
        Err(error) => say!("error: cannot run it: {error}"),
    }
}

/// Where lines are remembered.
fn history() -> Option<PathBuf> {
    let var = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = var("XDG_STATE_HOME").or_else(|| Some(var("HOME")?.join(".local/state")))?;
    Some(state.join("quorate/history"))
}

/// Completes lines.
struct Lines {
    commands: Command,
}

impl Completer for Lines {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let begun = line.get(..at).unwrap_or_default();
        let Ok(Words { mut words, .. }) = words::split(begun) else { return Ok((at, Vec::new())) };
        if begun.is_empty() || begun.ends_with(' ') {
            words.push(String::new());
        }
        let last = words.last().map_or(0, String::len);
        // A word in quotes is longer than what it stands for.
        let start = begun.rfind(' ').map_or(0, |space| space + 1);
        let start = if at - start == last { start } else { return Ok((at, Vec::new())) };
        let arguments: Vec<OsString> = std::iter::once("quorate".to_owned()).chain(words).map(OsString::from).collect();
        let (index, mut commands) = (arguments.len() - 1, self.commands.clone());
        let found = clap_complete::engine::complete(&mut commands, arguments, index, None).unwrap_or_default();
        let pairs = found.into_iter().filter(|one| !one.is_hide_set()).map(|one| {
            let text = one.get_value().to_string_lossy().into_owned();
            Pair { display: text.clone(), replacement: text }
        });
        Ok((start, pairs.collect()))
    }
}

impl Hinter for Lines {
    type Hint = String;
}

impl Highlighter for Lines {}
impl Validator for Lines {}
impl Helper for Lines {}
