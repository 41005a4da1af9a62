//! Commands on single entries.

use std::time::Duration;

use clap::{Args, Subcommand};
use quorate_client::api::{EntryView, LOCK_MS_MAX, Name, WriteAnswer};
use quorate_client::{Cas, Change, Error, Write};

use crate::criteria::Only;
use crate::fail::Failed;
use crate::fence::Fence;
use crate::parse::{self, Meaning};
use crate::refined::Refined;
use crate::{Context, output, waiting};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Read an entry
    ///
    /// Prints the value; at a terminal, a further line has its cas and revisions. In a pipe the value stands alone, and `--output json` gives
    /// all of it. Exit code 3 if there is no such entry.
    #[command(after_help = "Examples:
  quorate get stock/apples
  quorate get stock/apples | jq .
  quorate get stock/apples -o json | jq -r .cas
  quorate get logo --raw > logo.png
  quorate get stock/apples --wait 30s --cas 17   # until it is no longer cas 17")]
    Get(Get),
    /// Create or overwrite an entry
    #[command(
        alias = "set",
        after_help = "VALUE is JSON, or `-` for standard input, or @PATH for a file. Text that is not JSON needs --string \
or --bytes.

Examples:
  quorate put stock/apples 5
  quorate put motd --string 'Hello, world'
  quorate put logo @logo.png --bytes
  quorate put session/7 '{\"user\":\"ann\"}' --ttl 30s
  quorate put stock/apples 4 --cas 17"
    )]
    Put(Put),
    /// Create an entry; exit code 3 if it exists
    Insert(Plain),
    /// Overwrite an entry; exit code 3 if there is none
    Replace(Plain),
    /// Overwrite an entry only if its cas is still CAS; exit code 3 if it changed
    #[command(after_help = "Example:
  quorate get stock/apples               # 5, cas 17
  quorate cas stock/apples 17 4")]
    Cas {
        /// Which entry.
        #[arg(value_parser = parse::name)]
        key: Name,
        /// The token that `get` showed.
        #[arg(value_parser = parse::cas)]
        cas: Cas,
        /// JSON, `-` or @PATH.
        #[arg(allow_hyphen_values = true)]
        value: String,
        #[command(flatten)]
        meaning: Meaning,
        #[command(flatten)]
        write: Common,
    },
    /// Change parts of a JSON document
    #[command(
        after_help = "An object is a merge patch (RFC 7396): fields given are set, fields given as null are removed, the rest stays. A list \
is a JSON Patch (RFC 6902), or update operators: inc, set, unset, append, max, min, now.

Examples:
  quorate patch orders/o42 '{\"status\":\"paid\",\"note\":null}'
  quorate patch orders/o42 '{\"status\":\"paid\"}' --if 'status eq pending'
  quorate patch stock/apples '[{\"op\":\"inc\",\"path\":\"left\",\"value\":-1}]' --if 'left gt 0'"
    )]
    Patch {
        /// Which entry.
        #[arg(value_parser = parse::name)]
        key: Name,
        /// The patch: JSON, `-` or @PATH.
        patch: String,
        /// Only if its cas is still this.
        #[arg(long, value_parser = parse::cas)]
        cas: Option<Cas>,
        #[command(flatten)]
        write: Common,
    },
    /// Delete an entry; exit code 3 if there is none
    #[command(visible_alias = "rm", alias = "del")]
    Delete {
        /// Which entry.
        #[arg(value_parser = parse::name)]
        key: Name,
        /// Only if its cas is still this.
        #[arg(long, value_parser = parse::cas)]
        cas: Option<Cas>,
        /// Print the entry as it was.
        #[arg(long)]
        prev: bool,
        /// Say what would happen, delete nothing.
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        only: Only,
        #[command(flatten)]
        fence: Fence,
    },
    /// Set the time to live of an entry, change nothing else
    Touch {
        /// Which entry.
        #[arg(value_parser = parse::name)]
        key: Name,
        /// Time to live from now, like 30s; 0s for ever.
        #[arg(long, value_parser = parse::duration, value_name = "TIME", allow_hyphen_values = true)]
        ttl: Duration,
        #[command(flatten)]
        fence: Fence,
    },
    /// Lock an entry, extend or end such a lock
    #[command(subcommand)]
    Entry(Entry),
    /// Tell what became of a write, by its request id
    Request {
        /// The id that the write was sent with.
        #[arg(value_parser = parse::request_id)]
        id: quorate_client::RequestId,
    },
}

#[derive(Debug, Subcommand)]
pub enum Entry {
    /// Lock an entry; exit code 3 if somebody else has
    #[command(
        after_help = "The cas that it prints is the key: until the lock ends, only writes with it are applied, and the first of them ends the \
lock.

Example:
  quorate entry lock orders/o42 --for 20s --wait 10s
  quorate put orders/o42 '{\"status\":\"paid\"}' --cas 17"
    )]
    Lock {
        /// Which entry.
        #[arg(value_parser = parse::name)]
        key: Name,
        /// How long it holds by itself, at most 30s; 0s and more stand for 15s.
        #[arg(long = "for", default_value = "15s", value_parser = parse::duration, value_name = "TIME")]
        time: Duration,
        /// Print the entry.
        #[arg(long)]
        prev: bool,
        #[command(flatten)]
        patience: Patience,
        #[command(flatten)]
        fence: Fence,
    },
    /// Read an entry and lock it in one step; exit code 3 if somebody else has
    ///
    /// Prints the value and, on a second line, the key to the lock as cas.
    GetAndLock {
        /// Which entry.
        #[arg(value_parser = parse::name)]
        key: Name,
        /// How long the lock holds by itself, at most 30s; 0s and more stand for 15s.
        #[arg(long = "for", default_value = "15s", value_parser = parse::duration, value_name = "TIME")]
        time: Duration,
        #[command(flatten)]
        patience: Patience,
        #[command(flatten)]
        fence: Fence,
    },
    /// Let a lock hold longer, counted from now
    Extend {
        /// Which entry.
        #[arg(value_parser = parse::name)]
        key: Name,
        /// The key of the lock.
        #[arg(value_parser = parse::cas)]
        cas: Cas,
        /// How long, at most 30s; 0s and more stand for 15s.
        #[arg(long = "for", default_value = "15s", value_parser = parse::duration, value_name = "TIME")]
        time: Duration,
        #[command(flatten)]
        fence: Fence,
    },
    /// End a lock without a write
    Unlock {
        /// Which entry.
        #[arg(value_parser = parse::name)]
        key: Name,
        /// The key of the lock.
        #[arg(value_parser = parse::cas)]
        cas: Cas,
        #[command(flatten)]
        fence: Fence,
    },
}

/// What commands that lock an entry understand.
#[derive(Debug, Args)]
pub struct Patience {
    /// How long to wait while somebody else has it, up to 60s, first come first served; without this, not at all.
    #[arg(long, value_parser = parse::duration, value_name = "TIME")]
    wait: Option<Duration>,
}

impl Patience {
    fn on<'a, A>(&self, write: Write<'a, A>) -> Write<'a, A> {
        write.given(self.wait, Write::wait)
    }
}

#[derive(Debug, Args)]
pub struct Get {
    /// Which entry.
    #[arg(value_parser = parse::name)]
    key: Name,
    /// Print the bare value: JSON text or bytes, no newline added.
    #[arg(short, long)]
    raw: bool,
    /// The entry as it was at this revision.
    #[arg(long, value_name = "N", conflicts_with_all = ["local", "wait"])]
    revision: Option<u64>,
    /// Whatever the asked node has: fast, maybe stale.
    #[arg(long, conflicts_with = "wait")]
    local: bool,
    /// Wait at most this long (up to 60s) for a change, from the state now or from --cas; exit code 3 if there is none.
    #[arg(long, value_parser = parse::positive_duration, value_name = "TIME")]
    wait: Option<Duration>,
    /// With --wait: the cas that is known.
    #[arg(long, value_parser = parse::cas, requires = "wait")]
    cas: Option<Cas>,
}

#[derive(Debug, Args)]
pub struct Put {
    #[command(flatten)]
    plain: Plain,
    /// Only if its cas is still this.
    #[arg(long, value_parser = parse::cas, value_name = "CAS", group = "condition")]
    cas: Option<Cas>,
    /// Only if there is no such entry.
    #[arg(long, group = "condition")]
    if_absent: bool,
    /// Only if there is one.
    #[arg(long, group = "condition")]
    if_present: bool,
}

#[derive(Debug, Args)]
pub struct Plain {
    /// Which entry.
    #[arg(value_parser = parse::name)]
    key: Name,
    /// JSON, `-` for standard input or @PATH for a file.
    #[arg(allow_hyphen_values = true)]
    value: String,
    #[command(flatten)]
    meaning: Meaning,
    #[command(flatten)]
    write: Common,
}

/// What all writes of a value understand.
#[derive(Debug, Args)]
pub struct Common {
    /// Time to live, like 30s; without it an overwritten entry lives for ever.
    #[arg(long, value_parser = parse::ttl, value_name = "TIME", allow_hyphen_values = true)]
    ttl: Option<Duration>,
    /// Print the entry as it was before.
    #[arg(long)]
    prev: bool,
    /// Say what would happen, write nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    only: Only,
    /// The entry goes with this session: it is removed when that ends.
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    #[command(flatten)]
    fence: Fence,
}

/// The write under its conditions.
fn only<'a>(only: &Only, write: Write<'a>) -> Write<'a> {
    only.iter().fold(write, |write, one| write.only_if_json(one))
}

impl Common {
    fn on<'a>(&self, write: Write<'a>) -> Result<Write<'a>, Failed> {
        let write = write.given(self.ttl, Write::ttl).given(self.session.as_ref(), Write::session);
        self.fence.on(flags(only(&self.only, write), self.prev, self.dry_run))
    }
}

fn flags(write: Write<'_>, prev: bool, dry_run: bool) -> Write<'_> {
    write.asked(prev, Write::prev).asked(dry_run, Write::dry_run)
}

pub async fn run(context: &Context, command: Command) -> Result<(), Failed> {
    let client = &context.client;
    match command {
        Command::Get(args) => get(context, args).await,
        Command::Put(args) => put(context, args).await,
        Command::Insert(args) => plain(context, args, |write| write.if_absent()).await,
        Command::Replace(args) => plain(context, args, |write| write.if_present()).await,
        Command::Cas { key, cas, value, meaning, write } => {
            let wanted = client.cas(key, cas, parse::value(&value, meaning)?);
            finish(context, write.on(wanted)?, "written").await
        }
        Command::Patch { key, patch, cas, write } => {
            let patch = parse::patch(&patch)?;
            let wanted = with_cas(client.patch(key, patch), cas);
            finish(context, write.on(wanted)?, "written").await
        }
        Command::Delete { key, cas, prev, dry_run, only: conditions, fence } => {
            let wanted = only(&conditions, with_cas(client.remove(key), cas));
            finish(context, fence.on(flags(wanted, prev, dry_run))?, "deleted").await
        }
        Command::Touch { key, ttl, fence } => finish(context, fence.on(client.touch(key, ttl))?, "touched").await,
        Command::Entry(Entry::Lock { key, time, prev, patience, fence }) => {
            let (what, wait) = (format!("`{key}`, which somebody else has locked"), patience.wait);
            let write = fence.on(patience.on(flags(client.lock_entry(key, time), prev, false)))?;
            let locked = held(context, write, "locked", time);
            if wait.is_some() { waiting::for_entry(context, &what, locked).await } else { locked.await }
        }
        Command::Entry(Entry::GetAndLock { key, time, patience, fence }) => {
            let (what, wait) = (format!("`{key}`, which somebody else has locked"), patience.wait);
            let write = context.with_write_id(fence.on(patience.on(client.get_and_lock_entry(key, time)))?);
            let entry: EntryView = match wait {
                Some(_) => waiting::for_entry(context, &what, write.into_future()).await?,
                None => write.await?,
            };
            match context.shared.output.data() {
                Some(form) => output::show(form, &entry)?,
                None => output::entry_with_facts(&entry)?,
            }
            told_of_less(time, entry.lock_ms);
            Ok(())
        }
        Command::Entry(Entry::Extend { key, cas, time, fence }) => {
            held(context, fence.on(client.extend_entry_lock(key, cas, time))?, "extended", time).await
        }
        Command::Entry(Entry::Unlock { key, cas, fence }) => {
            finish(context, fence.on(client.unlock_entry(key, cas))?, "unlocked").await
        }
        Command::Request { id } => request(context, id).await,
    }
}

async fn get(context: &Context, args: Get) -> Result<(), Failed> {
    let entry = match args.wait {
        Some(wait) => Some(changed(context, &args, wait).await?),
        None => {
            let get = context.client.get(&args.key);
            get.given(args.revision, |get, revision| get.revision(revision))
                .asked(args.local, |get| get.local())
                .await?
        }
    };
    let Some(entry) = entry else { return Err(Failed::not_found(format!("there is no entry `{}`", args.key))) };
    match (args.raw, context.shared.output.data()) {
        (true, _) => output::raw(&entry.bytes().map_err(Error::from)?.unwrap_or_default()),
        (false, Some(form)) => output::show(form, &entry),
        (false, None) => output::entry(&entry),
    }
}

/// Waits for a change from what is known, or from what is there now.
async fn changed(context: &Context, args: &Get, wait: Duration) -> Result<EntryView, Failed> {
    let known = match &args.cas {
        Some(cas) => Some(*cas),
        None => context.client.get(&args.key).await?.and_then(|entry| entry.cas),
    };
    let change = context.client.wait_for_change(&args.key, known, wait);
    match waiting::for_entry(context, &format!("`{}` to change", args.key), change).await? {
        Change::Entry(entry) => Ok(*entry),
        Change::None => Err(Failed::condition(format!("`{}` did not change within {wait:?}", args.key))),
        Change::Gone => Err(Failed::not_found(format!("`{}` was removed", args.key))),
    }
}

async fn put(context: &Context, args: Put) -> Result<(), Failed> {
    let Put { plain: value, cas, if_absent, if_present } = args;
    plain(context, value, |write| match cas {
        Some(cas) => write.cas(cas),
        None if if_absent => write.if_absent(),
        None if if_present => write.if_present(),
        None => write,
    })
    .await
}

async fn plain(context: &Context, args: Plain, condition: impl FnOnce(Write<'_>) -> Write<'_>) -> Result<(), Failed> {
    let value = parse::value(&args.value, args.meaning)?;
    let write = condition(context.client.put(args.key, value));
    finish(context, args.write.on(write)?, "written").await
}

fn with_cas(write: Write<'_>, cas: Option<Cas>) -> Write<'_> {
    write.given(cas, Write::cas)
}

async fn finish(context: &Context, write: Write<'_>, verb: &str) -> Result<(), Failed> {
    let answer: WriteAnswer = context.with_write_id(write).await?;
    shown(context, &answer, verb)
}

/// Locks, or lets a lock hold longer, and says so where that is for less than was asked for.
async fn held(context: &Context, write: Write<'_>, verb: &str, asked: Duration) -> Result<(), Failed> {
    let answer: WriteAnswer = context.with_write_id(write).await?;
    shown(context, &answer, verb)?;
    told_of_less(asked, answer.lock_ms);
    Ok(())
}

/// Warns of a lock that ends before the time that was asked for.
pub fn told_of_less(asked: Duration, given: Option<u64>) {
    let asked = u64::try_from(asked.as_millis()).unwrap_or(u64::MAX);
    if let Some(given) = given.filter(|given| *given < asked) {
        let [asked, most, given] = [asked, LOCK_MS_MAX, given].map(output::millis);
        say!("warning: asked for {asked}, and a lock holds for {most} at most: locked for {given}; extend it in time");
    }
}

fn shown(context: &Context, answer: &WriteAnswer, verb: &str) -> Result<(), Failed> {
    match context.shared.output.data() {
        Some(form) => output::show(form, answer),
        None => output::written(answer, verb),
    }
}

async fn request(context: &Context, id: quorate_client::RequestId) -> Result<(), Failed> {
    use quorate_client::api::{RequestState, code_name};
    let Some(kept_outcome) = context.client.request_outcome(&id).await? else {
        return Err(Failed::not_found(format!(
            "request `{id}` is not known: it was never applied, its outcome is no longer kept (it is for 15 minutes at least), \
             or it is still on its way\n  next: within 15 minutes, repeat it with `--request-id {id}`: it is applied once"
        )));
    };
    if let Some(form) = context.shared.output.data() {
        return output::show(form, &kept_outcome);
    }
    let state = match (kept_outcome.state, kept_outcome.code) {
        (RequestState::Applied, _) => "applied".to_owned(),
        (RequestState::Rejected, Some(code)) => format!("rejected ({})", code_name(code)),
        (RequestState::Rejected, None) => "rejected".to_owned(),
    };
    let cas = kept_outcome.cas.map(|cas| format!(", cas {cas}")).unwrap_or_default();
    output::line(format!("{id}: {state}  revision {}{cas}", kept_outcome.decided_revision))
}
