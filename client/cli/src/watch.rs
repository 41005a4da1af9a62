//! `quorate watch`.

use std::collections::HashSet;
use std::ffi::OsString;

use quorate_client::api::{DeleteCause, Name, WatchEvent, WatchEventKind};
use quorate_client::{Watch, Watched};
use serde_json::json;

use crate::criteria::Where;
use crate::fail::Failed;
use crate::form::Form;
use crate::refined::Refined;
use crate::{Context, cas_text, output, parse, watch_run};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
With CMD it is run for each event, one after the other: the event is on its standard input as a line of JSON, and QUORATE_EVENT (put, \
delete, or has for an entry that was there before), QUORATE_EVENT_KEY, QUORATE_EVENT_REVISION and QUORATE_EVENT_CAS are in its \
environment.

Ends with Ctrl-C, or after --count events. Breaks are gone over: it goes on at another node, without a gap.

Examples:
  quorate watch orders/o1
  quorate watch --prefix orders/ --initial
  quorate watch --prefix orders/ --where 'status eq paid' --events put
  quorate watch --prefix orders/ --from 4711 --output json
  quorate watch --prefix orders/ --part 0/4 --initial
  quorate watch --prefix jobs/ --count 1 && echo something happened
  quorate watch config/nginx --initial -- ./reload-nginx")]
pub struct Args {
    /// The key.
    #[arg(required_unless_present_any = ["prefix", "start"], value_parser = parse::name)]
    key: Option<Name>,
    /// All keys that begin with this; with an empty one all there are.
    #[arg(short, long, value_name = "PREFIX", conflicts_with_all = ["key", "start"], value_parser = parse::name)]
    prefix: Option<Name>,
    /// All keys from this one on.
    #[arg(long, value_name = "KEY", conflicts_with = "key", value_parser = parse::name)]
    start: Option<Name>,
    /// Up to this one, which is left out.
    #[arg(long, value_name = "KEY", requires = "start", value_parser = parse::name)]
    end: Option<Name>,
    /// First all entries as they are.
    #[arg(long, conflicts_with = "from")]
    initial: bool,
    /// From this revision on, instead of from now on.
    #[arg(long, value_name = "N")]
    from: Option<u64>,
    #[command(flatten)]
    criteria: Where,
    /// Only the keys of one of several parts, for workers that share a prefix: 0/4, 1/4, 2/4, 3/4.
    #[arg(long, value_name = "I/N", value_parser = parse::part, conflicts_with = "key")]
    part: Option<(u32, u32)>,
    /// With the entry as it was before each change.
    #[arg(long)]
    prev: bool,
    /// Without values.
    #[arg(long)]
    keys_only: bool,
    /// Only these: put, delete, or both, separated by a comma.
    #[arg(long, value_name = "KINDS", value_delimiter = ',', value_parser = kind)]
    events: Vec<WatchEventKind>,
    /// End after so many events, initial entries included.
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Begin with whatever the asked node has, maybe stale.
    #[arg(long)]
    local: bool,
    /// With CMD: go on when it fails, instead of ending with its exit code.
    #[arg(long, requires = "command")]
    keep_going: bool,
    /// A command to run for each event, and its arguments.
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

fn kind(text: &str) -> Result<WatchEventKind, String> {
    match text {
        "put" => Ok(WatchEventKind::Put),
        "delete" => Ok(WatchEventKind::Delete),
        _ => Err("neither put nor delete".into()),
    }
}

pub async fn run(context: &Context, args: Args) -> Result<(), Failed> {
    tokio::select! {
        ended = follow(context, &args) => ended,
        // The way to end it, so no failure.
        pressed = tokio::signal::ctrl_c() => {
            pressed.map_err(|error| Failed::other(format!("Ctrl-C cannot be noticed: {error}")))
        }
    }
}

async fn follow(context: &Context, args: &Args) -> Result<(), Failed> {
    let mut watch = start(context, args).await?;
    let key = args.key.as_ref().filter(|key| key.as_bytes().ends_with(b"/") && context.shared.output == Form::Text);
    if let Some(key) = key {
        say!("(this watches one key, `{key}`; --prefix {key} watches all below it)");
    }
    let mut left = args.count.unwrap_or(u64::MAX);
    // Initial entries for which the command ran: where the stream breaks among them, all come anew.
    let mut had = HashSet::new();
    while left > 0 {
        let watched = watch.next().await?;
        match &watched {
            Watched::Event(event)
                if event.initial && !args.command.is_empty() && !had.insert((event.key.clone(), event.revision)) =>
            {
                continue;
            }
            Watched::Synced(_) => had = HashSet::new(),
            _ => {}
        }
        left -= u64::from(matches!(watched, Watched::Event(_)));
        if !args.command.is_empty() {
            if let Watched::Event(event) = &watched {
                watch_run::run(context, &args.command, event, args.keep_going).await?;
            }
            continue;
        }
        match context.shared.output.data() {
            Some(form) => show_data(form, watched)?,
            None => show(&watched)?,
        }
    }
    Ok(())
}

async fn start(context: &Context, args: &Args) -> Result<Watch, Failed> {
    let setup = context.client.watch(args.prefix.clone().unwrap_or_default());
    let setup = setup
        .given(args.key.as_ref(), |setup, key| setup.key(key))
        .given(args.start.as_ref(), |setup, start| setup.range(start, args.end.clone()))
        .asked(args.initial, |setup| setup.initial())
        .given(args.from, |setup, revision| setup.from(revision))
        .given(args.part, |setup, (index, of)| setup.part(index, of))
        .asked(args.prev, |setup| setup.prev())
        .asked(args.keys_only, |setup| setup.keys_only())
        .asked(args.local, |setup| setup.local());
    let setup = args.criteria.iter().fold(setup, |setup, criterion| setup.filter_json(criterion));
    let only = args.events.split_first().filter(|(first, others)| others.iter().all(|other| other == *first));
    Ok(setup.given(only, |setup, (kind, _)| setup.only(*kind)).start().await?)
}

fn show_data(form: Form, watched: Watched) -> Result<(), Failed> {
    match watched {
        Watched::Event(event) => output::item(form, &event),
        Watched::Synced(revision) => output::item(form, &json!({"type": "synced", "revision": revision.to_string()})),
        Watched::Restarted => output::item(form, &json!({"type": "restarted"})),
        _ => Ok(()),
    }
}

fn show(watched: &Watched) -> Result<(), Failed> {
    match watched {
        Watched::Event(event) => show_event(event),
        Watched::Synced(revision) => output::line(format!("(that is all as of revision {revision}; now what changes)")),
        Watched::Restarted => output::line("(the stream broke; all entries come anew)"),
        _ => Ok(()),
    }
}

fn show_event(event: &WatchEvent) -> Result<(), Failed> {
    let WatchEvent { key, revision, .. } = event;
    let verb = watch_run::verb(event);
    match (&event.entry, event.cause) {
        (Some(entry), _) => {
            let cas = cas_text::shown(entry.cas, "none (locked)");
            output::line(format!("{verb}: {key}  {}  cas {cas}, version {}", output::value(entry), entry.version))?;
        }
        (None, Some(DeleteCause::Removed) | None) => output::line(format!("{verb}: {key}  revision {revision}"))?,
        (None, Some(DeleteCause::Expired)) => output::line(format!("{verb}: {key}  expired, revision {revision}"))?,
        (None, Some(DeleteCause::SessionEnded)) => {
            output::line(format!("{verb}: {key}  its session ended, revision {revision}"))?;
        }
    }
    match &event.prev {
        Some(prev) => {
            output::line(format!("  before: {}  cas {}", output::value(prev), cas_text::shown(prev.cas, "none")))
        }
        None => Ok(()),
    }
}
