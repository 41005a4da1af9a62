//! Commands on collections and sequences.

use clap::Subcommand;
use quorate_client::api::{CollectionAnswer, CollectionRemoved, CollectionRules, IndexState, IndexView};
use quorate_client::{Cas, CollectionWrite};

use crate::fail::Failed;
use crate::form::Form;
use crate::refined::Refined;
use crate::{Context, output, parse};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// List all collections that have rules
    List,
    /// Show the rules and indexes of a collection; exit code 3 if it has none
    Show {
        /// Which collection.
        name: String,
    },
    /// Set all rules of a collection, in place of those that it had
    #[command(after_help = "\
The rules hold for every document whose key begins with the name and a slash. RULES is a JSON object with any of:
  fields     {\"PATH\":{\"type\":…,\"max\":…,\"default\":…,\"sequence\":NAME,\"auto_update\":true}}; types are any boolean long double
             varchar datetime object array; string and integer are taken for varchar and long
  required   [\"PATH\",…]
  indexes    [[\"PATH\",…],{\"fields\":[\"PATH\",…],\"unique\":true}]
  ttl_ms     time to live of what is written without one
  precondition_required   true: writes need a cas or a condition

Example:
  quorate collection set orders '{\"required\":[\"status\"],\"fields\":{\"number\":{\"type\":\"long\",\"sequence\":\"orders\"}},\"indexes\":[[\"status\"]]}'
  quorate collection show orders")]
    Set {
        /// Which collection.
        name: String,
        /// The rules: JSON, `-` or @PATH.
        rules: String,
        /// Only if the cas of its rules is still this.
        #[arg(long, value_parser = parse::cas, group = "condition")]
        cas: Option<Cas>,
        /// Only if it has no rules.
        #[arg(long, group = "condition")]
        if_absent: bool,
    },
    /// Take the rules of a collection away; its documents stay
    Delete {
        /// Which collection.
        name: String,
        /// Only if the cas of its rules is still this.
        #[arg(long, value_parser = parse::cas)]
        cas: Option<Cas>,
    },
}

#[derive(Debug, Subcommand)]
pub enum SequenceCommand {
    /// Print the last number given, 0 before the first
    Show {
        /// Which sequence.
        name: String,
    },
    /// Take the next number, or several: prints it, or the first and the last of them
    #[command(after_help = "Examples:
  quorate sequence next invoices 10
  number=$(quorate sequence next invoices)")]
    Next {
        /// Which sequence.
        name: String,
        /// How many.
        #[arg(default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
        count: u64,
    },
}

pub async fn run(context: &Context, command: Command) -> Result<(), Failed> {
    let (client, form) = (&context.client, context.shared.output);
    match command {
        Command::List => {
            let list = client.collections().await?;
            match form.data() {
                Some(form) => output::show(form, &list),
                None => list.collections.iter().try_for_each(|one| output::line(row(one))),
            }
        }
        Command::Show { name } => match client.collection(&name).get().await? {
            None => Err(Failed::not_found(format!("there are no rules of a collection `{name}`"))),
            Some(collection) if form != Form::Text => output::show(form, &collection),
            Some(collection) => show(&collection),
        },
        Command::Set { name, rules, cas, if_absent } => {
            let write = client.collection(name).put(parse_rules(&rules)?);
            set(context, write.given(cas, CollectionWrite::cas).asked(if_absent, CollectionWrite::if_absent)).await
        }
        Command::Delete { name, cas } => {
            let write = client.collection(name).delete();
            remove(context, write.given(cas, CollectionWrite::cas)).await
        }
    }
}

fn parse_rules(argument: &str) -> Result<CollectionRules, Failed> {
    let text = parse::argument(argument)?;
    serde_json::from_slice(&text).or_else(|error| {
        // One that has it all from elsewhere is read again with our types.
        let renamed = with_our_types(&text).and_then(|text| serde_json::from_slice(&text).ok());
        renamed.ok_or_else(|| Failed::usage(format!("these are no rules: {error}")))
    })
}

/// Types of fields as other schemas call them.
const TYPES: [(&str, &str); 9] = [
    ("string", "varchar"),
    ("text", "varchar"),
    ("integer", "long"),
    ("int", "long"),
    ("number", "double"),
    ("float", "double"),
    ("bool", "boolean"),
    ("timestamp", "datetime"),
    ("date-time", "datetime"),
];

/// The rules with our names of such types.
fn with_our_types(rules: &[u8]) -> Option<Vec<u8>> {
    let mut rules: serde_json::Value = serde_json::from_slice(rules).ok()?;
    for rule in rules.get_mut("fields")?.as_object_mut()?.values_mut() {
        let known = TYPES.iter().find(|(name, _)| rule.get("type").is_some_and(|kind| kind == name));
        if let Some((_, ours)) = known {
            rule["type"] = (*ours).into();
        }
    }
    serde_json::to_vec(&rules).ok()
}

async fn set(context: &Context, write: CollectionWrite<'_, CollectionAnswer>) -> Result<(), Failed> {
    let answer = with_id(context, write).await?;
    let facts = format!("set: {}  cas {}, version {}", answer.name, answer.cas, answer.version);
    output::done(context.shared.output, &answer, answer.replayed, facts)
}

async fn remove(context: &Context, write: CollectionWrite<'_, CollectionRemoved>) -> Result<(), Failed> {
    let answer = with_id(context, write).await?;
    let facts = format!("rules deleted: {}  revision {}", answer.name, answer.revision);
    output::done(context.shared.output, &answer, answer.replayed, facts)
}

fn with_id<'a, A>(context: &Context, write: CollectionWrite<'a, A>) -> CollectionWrite<'a, A> {
    write.given(context.request_id(), CollectionWrite::request_id)
}

fn show(collection: &CollectionAnswer) -> Result<(), Failed> {
    let rules = serde_json::to_string(&collection.rules);
    output::line(rules.map_err(|error| Failed::other(format!("the rules have no JSON: {error}")))?)?;
    let CollectionAnswer { cas, version, create_revision, mod_revision, .. } = collection;
    output::line(format!(
        "  cas {cas}, version {version}, created at revision {create_revision}, changed at {mod_revision}"
    ))?;
    collection.indexes.iter().try_for_each(|index| output::line(format!("  index {}", index_text(index))))
}

fn row(collection: &CollectionAnswer) -> String {
    let indexes: Vec<_> = collection.indexes.iter().map(index_text).collect();
    let indexes = if indexes.is_empty() { "no index".to_owned() } else { format!("index {}", indexes.join(", ")) };
    format!("{}  cas {}  {indexes}", collection.name, collection.cas)
}

fn index_text(index: &IndexView) -> String {
    let state = match index.state {
        IndexState::Building => "building",
        IndexState::Ready => "ready",
        IndexState::Failed => "failed",
    };
    let unique = if index.unique { " unique" } else { "" };
    let detail = index.detail.as_ref().map(|detail| format!(" ({detail})")).unwrap_or_default();
    format!("{}{unique} {state}{detail}", index.fields.join("+"))
}

pub async fn run_sequence(context: &Context, command: SequenceCommand) -> Result<(), Failed> {
    let form = context.shared.output;
    match command {
        SequenceCommand::Show { name } => {
            let answer = context.client.sequence(name).get().await?;
            output::answer(form, &answer, || answer.value.to_string())
        }
        SequenceCommand::Next { name, count } => {
            let answer = context.with_id(context.client.sequence(name).next(count)).await?;
            output::answer(form, &answer, || match count {
                1 => answer.first.to_string(),
                _ => format!("{} {}", answer.first, answer.last),
            })
        }
    }
}
