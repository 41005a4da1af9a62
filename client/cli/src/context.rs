//! `quorate context`: names for clusters.

use clap::Subcommand;
use serde::Serialize;
use serde_json::json;

use crate::connection::Flags;
use crate::contexts::{self, Contexts, Setting, Time};
use crate::fail::Failed;
use crate::form::Form;
use crate::output;

#[derive(Debug, Subcommand)]
#[command(after_help = "\
A context is a name for what the flags say of a connection: --endpoints, --ca, --cert, --key, --token-file, --timeout and --output. Flags \
count more than the environment, and that more than a context. Where flags or environment name endpoints, only a context that \
--context or QUORATE_CONTEXT names counts: no cluster is shown the token of another. The file is quorate/config.toml in \
XDG_CONFIG_HOME or ~/.config, or what QUORATE_CONFIG_FILE names.

Examples:
  quorate context set shop --endpoints 10.0.0.1:7100,10.0.0.2:7100 --ca shop.crt --token-file shop.token
  quorate context use shop
  quorate --context shop get stock/apples")]
pub enum Command {
    /// List the contexts; `*` is before the current one
    List,
    /// Show a context; secrets are left out
    Show {
        /// Which; the current one without it.
        name: Option<String>,
    },
    /// Let a context be the current one, which counts where none is named
    Use {
        /// Which.
        name: String,
    },
    /// Make or change a context: it says from now on what the flags of this command and the environment say
    ///
    /// What they do not say stays as it is. The first context becomes the current one.
    #[command(after_help = "Examples:
  quorate context set local --endpoints 127.0.0.1:7100
  quorate context set local --output table")]
    Set {
        /// Which.
        name: String,
        /// Keep the token of QUORATE_TOKEN in the file, which only you can read.
        #[arg(long, conflicts_with = "token_file")]
        keep_token: bool,
    },
    /// Forget a context
    Delete {
        /// Which.
        name: String,
    },
}

/// A context as it is shown.
#[derive(Serialize)]
struct Shown<'a> {
    context: &'a str,
    current: bool,
    #[serde(flatten)]
    setting: Setting,
}

/// Runs a command on contexts. Asks no cluster.
pub fn run(flags: &Flags, output: Option<Form>, command: Command) -> Result<(), Failed> {
    let mut contexts = contexts::load()?;
    let form = output.unwrap_or(Form::Text);
    match command {
        Command::List => list(&contexts, form),
        Command::Show { name } => {
            let name = name.or(contexts.current.clone());
            let name =
                name.ok_or_else(|| Failed::not_found("there is no current context; `quorate context use` makes one"))?;
            let shown = shown(&contexts, &name, contexts.named(&name)?);
            if form == Form::Text { text(&shown) } else { output::show(form, &shown) }
        }
        Command::Use { name } => {
            contexts.named(&name)?;
            contexts.current = Some(name.clone());
            contexts.save()?;
            tell(form, &contexts, "current", &name)
        }
        Command::Set { name, keep_token } => {
            let setting = contexts.all.entry(name.clone()).or_default();
            set(setting, flags, output, keep_token)?;
            if contexts.all.len() == 1 {
                contexts.current = Some(name.clone());
            }
            contexts.save()?;
            tell(form, &contexts, "set", &name)
        }
        Command::Delete { name } => {
            contexts.all.remove(&name).ok_or_else(|| contexts::unknown(&name))?;
            contexts.current = contexts.current.filter(|current| *current != name);
            contexts.save()?;
            tell(form, &contexts, "deleted", &name)
        }
    }
}

/// Says what was done, and which context counts now.
fn tell(form: Form, contexts: &Contexts, verb: &str, name: &str) -> Result<(), Failed> {
    let answer = json!({"context": name, "current": contexts.current.as_deref() == Some(name)});
    output::answer(form, &answer, || format!("{verb}: {name}"))
}

fn set(setting: &mut Setting, flags: &Flags, output: Option<Form>, keep_token: bool) -> Result<(), Failed> {
    let absolute = |path: &std::path::PathBuf| {
        std::path::absolute(path).map_err(|error| Failed::usage(format!("{}: {error}", path.display())))
    };
    setting.endpoints = flags.endpoints.clone().or(setting.endpoints.take());
    setting.timeout = flags.timeout.map(Time).or(setting.timeout);
    setting.output = output.or(setting.output);
    for (given, kept) in
        [(&flags.ca, &mut setting.ca), (&flags.cert, &mut setting.cert), (&flags.key, &mut setting.key)]
    {
        if let Some(path) = given {
            *kept = Some(absolute(path)?);
        }
    }
    if let Some(path) = &flags.token_file {
        (setting.token_file, setting.token) = (Some(absolute(path)?), None);
    }
    if keep_token {
        let token = std::env::var(quorate_client::TOKEN_ENV).ok().filter(|token| !token.is_empty());
        let token =
            token.ok_or_else(|| Failed::usage("--keep-token keeps the token of QUORATE_TOKEN, and there is none"))?;
        (setting.token_file, setting.token) = (None, Some(token));
    }
    Ok(())
}

fn shown<'a>(contexts: &Contexts, name: &'a str, mut setting: Setting) -> Shown<'a> {
    setting.token = setting.token.map(|_| "(kept)".to_owned());
    Shown { context: name, current: contexts.current.as_deref() == Some(name), setting }
}

fn list(contexts: &Contexts, form: Form) -> Result<(), Failed> {
    let all: Vec<_> = contexts.all.iter().map(|(name, setting)| shown(contexts, name, setting.clone())).collect();
    output::page(form, &json!({"contexts": all}), &all, |one| {
        let mark = if one.current { '*' } else { ' ' };
        format!("{mark} {}  {}", one.context, one.setting.endpoints.as_deref().unwrap_or("(local)"))
    })
}

fn text(shown: &Shown<'_>) -> Result<(), Failed> {
    let Shown { context, current, setting } = shown;
    let Setting { endpoints, ca, cert, key, token_file, token, timeout, output } = setting;
    output::line(format!("{context}{}", if *current { "  (current)" } else { "" }))?;
    let path = |path: &Option<std::path::PathBuf>| path.as_ref().map(|path| path.display().to_string());
    let said = [
        ("endpoints", endpoints.clone()),
        ("ca", path(ca)),
        ("cert", path(cert)),
        ("key", path(key)),
        ("token file", path(token_file)),
        ("token", token.clone()),
        ("timeout", timeout.map(|time| output::duration(time.0))),
        ("output", output.map(|form| form.name().to_owned())),
    ];
    said.into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .try_for_each(|(name, value)| output::line(format!("  {name}: {value}")))
}
