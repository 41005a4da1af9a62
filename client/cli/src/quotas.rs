//! `quorate quota`.

use clap::{Args, Subcommand};
use quorate_client::api::{Name, QuotaAmounts, QuotaAnswer, QuotaRequest, QuotaState};

use crate::fail::Failed;
use crate::{Context, output, parse};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Set what a user, every user without a quota, or all names with a prefix may take
    ///
    /// All bounds are given at once; what is not given is not bounded. What is there beyond a quota already stays.
    #[command(after_help = "Examples:
  quorate quota set --user app --sessions 100 --locks 50
  quorate quota set --prefix tenants/acme/ --entries 10000 --bytes 64MiB
  quorate quota set --prefix mail/ --tasks 1000
  quorate quota set --default --sessions 1000")]
    Set {
        #[command(flatten)]
        subject: Subject,
        /// Most sessions of a user.
        #[arg(long, value_name = "N")]
        sessions: Option<u64>,
        /// Most locks and leaderships that the sessions of a user hold or wait for.
        #[arg(long, value_name = "N")]
        locks: Option<u64>,
        /// Most entries below a prefix.
        #[arg(long, value_name = "N")]
        entries: Option<u64>,
        /// Most bytes of entries and tasks below a prefix, like 500000, 64MiB or 2GiB.
        #[arg(long, value_name = "BYTES", value_parser = bytes)]
        bytes: Option<u64>,
        /// Most tasks that are not done, in queues whose names begin with a prefix.
        #[arg(long, value_name = "N")]
        tasks: Option<u64>,
    },
    /// Show a quota with what is used of it; exit code 3 if a prefix has none
    #[command(after_help = "Example:\n  quorate quota show --user app")]
    Show {
        #[command(flatten)]
        subject: Subject,
    },
    /// List all quotas with what is used: that of every user first, and of users also those without one that use something
    #[command(after_help = "Example:\n  quorate quota list")]
    List,
    /// Remove a quota; exit code 3 if there is none
    #[command(after_help = "Example:\n  quorate quota rm --prefix tenants/acme/")]
    Rm {
        #[command(flatten)]
        subject: Subject,
    },
}

/// Whose quota it is.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct Subject {
    /// Of a user.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Of all names with this prefix.
    #[arg(long, value_name = "PREFIX", value_parser = parse::name)]
    prefix: Option<Name>,
    /// Of every user that has none of its own.
    #[arg(long)]
    default: bool,
}

pub async fn run(context: &Context, command: Command) -> Result<(), Failed> {
    let (quotas, form) = (context.client.quotas(), context.shared.output);
    match command {
        Command::Set { subject, sessions, locks, entries, bytes, tasks } => {
            let bounds = QuotaRequest { sessions, locks, entries, bytes, tasks, request_id: None };
            let pending = match (&subject.user, &subject.prefix) {
                (Some(name), _) => quotas.set_principal(name, bounds),
                (None, Some(prefix)) => quotas.set_prefix(prefix, bounds),
                (None, None) => quotas.set_default(bounds),
            };
            let answer = context.with_id(pending).await?;
            output::done(form, &answer, answer.replayed, format!("set: {}", text(&answer)))
        }
        Command::Show { subject } => {
            let answer = match (&subject.user, &subject.prefix) {
                (Some(name), _) => Some(quotas.principal(name).await?),
                (None, Some(prefix)) => quotas.prefix(prefix).await?,
                (None, None) => Some(quotas.default_quota().await?),
            };
            match answer {
                None => Err(Failed::not_found(format!("{} has no quota", shown(&subject)))),
                Some(answer) => output::answer(form, &answer, || text(&answer)),
            }
        }
        Command::List => list(context).await,
        Command::Rm { subject } => {
            let pending = match (&subject.user, &subject.prefix) {
                (Some(name), _) => quotas.remove_principal(name),
                (None, Some(prefix)) => quotas.remove_prefix(prefix),
                (None, None) => quotas.remove_default(),
            };
            let answer = context.with_id(pending).await?;
            let facts = format!("removed: the quota of {}  revision {}", shown(&subject), answer.revision);
            output::done(form, &answer, answer.replayed, facts)
        }
    }
}

fn shown(subject: &Subject) -> String {
    match (&subject.user, &subject.prefix) {
        (Some(name), _) => format!("the user `{name}`"),
        (None, Some(prefix)) => format!("the prefix `{prefix}`"),
        (None, None) => "every user".to_owned(),
    }
}

async fn list(context: &Context) -> Result<(), Failed> {
    let quotas = context.client.quotas();
    // In a list it stands without where it was read, as the others do.
    let mut usual = quotas.default_quota().await?;
    (usual.revision, usual.index) = (None, None);
    let mut first = Some(usual);
    for pages in [quotas.principals(), quotas.prefixes()] {
        let mut page = pages.page().await?;
        loop {
            if let Some(usual) = first.take() {
                page.quotas.insert(0, usual);
            }
            output::page(context.shared.output, &page, &page.quotas, text)?;
            let Some(cursor) = &page.cursor else { break };
            page = pages.page_after(cursor).await?;
        }
    }
    Ok(())
}

/// A quota in a line: whose it is, then what is used and what is bounded of each thing.
fn text(quota: &QuotaAnswer) -> String {
    let whose = match (&quota.principal, &quota.prefix) {
        (Some(name), _) => format!("user {name}"),
        (None, Some(prefix)) => format!("prefix {prefix}"),
        (None, None) => "every user".to_owned(),
    };
    let mut parts = vec![whose];
    let used = quota.used.unwrap_or_default();
    for (name, pick) in AMOUNTS {
        match (pick(&used), pick(&quota.bounds)) {
            (Some(used), Some(bound)) => parts.push(format!("{name} {used} of {bound}")),
            (Some(used), None) => parts.push(format!("{name} {used}")),
            (None, Some(bound)) => parts.push(format!("{name} at most {bound}")),
            (None, None) => {}
        }
    }
    if parts.len() == 1 {
        parts.push("no bounds".to_owned());
    }
    if quota.is_default {
        parts.push("(as every user)".to_owned());
    }
    if quota.state == Some(QuotaState::Counting) {
        parts.push("(counting)".to_owned());
    }
    parts.join("  ")
}

/// One of the things that are counted.
type Pick = fn(&QuotaAmounts) -> Option<u64>;

/// What is counted, in the order in which it is shown.
const AMOUNTS: [(&str, Pick); 5] = [
    ("sessions", |amounts| amounts.sessions),
    ("locks", |amounts| amounts.locks),
    ("entries", |amounts| amounts.entries),
    ("bytes", |amounts| amounts.bytes),
    ("tasks", |amounts| amounts.tasks),
];

/// A number of bytes, with or without a unit.
fn bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 7] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
    ];
    let unit = UNITS.iter().find_map(|(unit, times)| Some((text.strip_suffix(unit)?, *times)));
    let (number, times) = unit.unwrap_or((text, 1));
    let number = number.trim_end().parse::<u64>().ok().and_then(|number| number.checked_mul(times));
    number.ok_or_else(|| "expected a number of bytes, like 500000, 64MiB or 2GiB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_may_have_a_unit() {
        for (text, expected) in [("0", 0), ("500000", 500_000), ("64MiB", 64 << 20), ("2 GiB", 2 << 30), ("3kB", 3_000)]
        {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for bad in ["", "MiB", "-1", "1.5GiB", "9m", "99999999999TiB"] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_line_says_what_is_used_of_what() {
        let quota: QuotaAnswer = serde_json::from_str(
            r#"{"prefix":"a/","bounds":{"entries":10},"used":{"entries":3,"bytes":40,"tasks":0},"state":"counting"}"#,
        )
        .expect("a quota");
        assert_eq!(text(&quota), "prefix a/  entries 3 of 10  bytes 40  tasks 0  (counting)");
        let quota: QuotaAnswer =
            serde_json::from_str(r#"{"principal":"ann","bounds":{},"is_default":true}"#).expect("a quota");
        assert_eq!(text(&quota), "user ann  no bounds  (as every user)");
    }
}
