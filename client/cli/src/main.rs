//! `quorate`: the command line.
//!
//! Owns the table of commands and what they share: endpoints, deadline, output form, exit code. Each group of commands has
//! a file of its own.

#![warn(clippy::print_stderr)]

// Its macro is used by the other modules.
#[macro_use]
mod said;

mod arguments;
mod audit;
mod backup;
mod barrier;
mod bench;
mod bulk;
mod cas_text;
mod change_where;
mod claim;
mod cluster;
mod collections;
mod completion;
mod connection;
mod context;
mod contexts;
mod criteria;
mod edit;
mod election;
mod election_run;
mod entries;
mod examples;
mod export;
mod fail;
mod fence;
mod find;
mod form;
mod groups;
mod guarded;
mod latch;
mod listing;
mod load;
mod lock;
mod lock_run;
mod mcp;
mod members;
mod merge;
mod node;
mod output;
mod parse;
mod past;
mod pretty;
mod quotas;
mod rates;
mod refined;
mod rewrite;
mod roles;
mod session;
mod shell;
mod signals;
mod status;
mod support;
mod sys;
mod table;
mod task_work;
mod tasks;
mod tokens;
mod top;
mod tree;
mod txn;
mod update;
mod users;
mod waiting;
mod watch;
mod watch_run;
mod words;
mod work;
mod yaml;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::CompleteEnv;
use quorate_client::{Client, Pending, Protocol, RequestId, Write};

use arguments::Arguments;
use connection::{Connection, Flags};
use fail::Failed;
use form::{Form, OUTPUT_ENV};
use refined::Refined;

/// Talk to a Quorate cluster.
///
/// Every command asks the nodes in turn until one can answer, within the deadline. Every write carries a request id and is
/// applied at most once, however often it is sent.
#[derive(Debug, Parser)]
#[command(name = "quorate", version, after_help = AFTER_HELP, max_term_width = 120)]
struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Exit codes:
  0  done
  1  error: the cluster could not be reached, gave up, refused, or the outcome of a write is unknown
  2  usage: the command line is wrong; nothing was done
  3  condition not met: the key is not as the command needs it (missing, exists already, changed since its cas was read);
     of several things some were refused; there was nothing to claim; a lock was not got in time

Examples:
  quorate put stock/apples 5
  quorate get stock/apples
  quorate cas stock/apples 17 4          # only if it has not changed since cas 17
  quorate list stock/
  quorate find stock/ --where 'left lt 5'
  quorate watch --prefix stock/
  quorate status";

/// What all commands understand.
#[derive(Debug, clap::Args)]
struct Common {
    #[command(flatten)]
    connection: Flags,
    /// The form of the output; `text` if nothing else is said.
    #[arg(short, long, global = true, value_enum, env = OUTPUT_ENV, value_name = "FORM", help_heading = GLOBAL)]
    output: Option<Form>,
    /// The same as `--output json`, as other programs have it.
    #[arg(long, global = true, hide = true)]
    json: bool,
    /// Idempotency key: repeats a write whose outcome stayed unknown, safely. Without it a random one.
    #[arg(long, global = true, value_parser = parse::request_id, value_name = "ID", help_heading = GLOBAL)]
    request_id: Option<RequestId>,
}

/// Above what all commands understand, in the help of each.
pub const GLOBAL: &str = "Global options";

#[derive(Debug, Subcommand)]
enum Command {
    #[command(flatten)]
    Entries(entries::Command),
    /// List keys that begin with PREFIX, and their values
    #[command(visible_alias = "ls")]
    List(listing::Args),
    /// Change a value in the editor
    Edit(edit::Args),
    /// Change a value by a command: again while somebody else was faster
    Update(update::Args),
    /// Show what an entry was, version by version
    History(past::HistoryArgs),
    /// Show in what two versions of an entry differ
    Diff(past::DiffArgs),
    /// Let an entry be what it was
    Revert(past::RevertArgs),
    /// Find entries by what holds of them
    Find(find::Args),
    /// Count the entries of which something holds
    Count(find::CountArgs),
    /// Apply many operations, each on its own
    Bulk(bulk::Args),
    /// Load entries from lines of JSON, any number of them
    #[command(visible_alias = "import")]
    Load(load::Args),
    /// Write entries as lines of JSON, all of one revision
    Export(export::Args),
    /// Do several things together or not at all
    Txn(txn::Args),
    /// Change every document that matches
    UpdateWhere(change_where::UpdateArgs),
    /// Delete every entry that matches
    DeleteWhere(change_where::DeleteArgs),
    /// Find entries that nobody has locked, and lock them
    Claim(claim::Args),
    /// Follow the changes of a key, or of many, as they happen
    Watch(watch::Args),
    /// Show and set the rules of collections
    #[command(subcommand)]
    Collection(collections::Command),
    /// Read sequences, take numbers from them
    #[command(subcommand)]
    Sequence(collections::SequenceCommand),
    /// Run a command while a lock is held; look at locks, release them
    Lock(lock::Args),
    /// Run a command while this process leads; look at elections, proclaim, resign
    #[command(subcommand)]
    Election(election::Command),
    /// Run a command while this process leads: short for `election run`
    Elect(election_run::Args),
    /// Create, renew and end sessions
    #[command(subcommand)]
    Session(session::Command),
    /// Meet others at a barrier
    #[command(subcommand)]
    Barrier(barrier::Command),
    /// Count down latches, wait for them
    #[command(subcommand)]
    Latch(latch::Command),
    /// Schedule tasks, work them off, look at queues
    #[command(subcommand)]
    Task(tasks::Command),
    /// Make, show and delete users
    #[command(subcommand)]
    User(users::Command),
    /// Make, show and delete roles: what users may do
    #[command(subcommand)]
    Role(roles::Command),
    /// Bound what users, and names with a prefix, may take; show what they use
    #[command(subcommand)]
    Quota(quotas::Command),
    /// Give users tokens, list and delete them
    #[command(subcommand)]
    Token(tokens::Command),
    /// Show who changed a key, who tried to, and when
    Audit(audit::Args),
    /// Show whom the cluster takes you for, and what you may do
    Whoami,
    #[command(flatten)]
    Cluster(cluster::Command),
    /// Show the cluster in one view: asks every member
    ///
    /// Exit code 1 if no node answers, or if the cluster has no leader.
    Status,
    /// Show what the nodes are doing, again and again
    ///
    /// Asks the endpoints for their metrics. Rates are of the time between two looks.
    Top(top::Args),
    /// Ask single nodes about their log and their settings
    #[command(subcommand)]
    Node(node::Command),
    /// Write the whole cluster into a file, for a restore
    Backup(backup::Args),
    /// Write what somebody who is to help needs to know into a file: no keys, no values, no secrets
    SupportBundle(support::Args),
    /// Measure the cluster with closed-loop clients
    Bench(Box<bench::Args>),
    /// Give coding agents claims, locks, entries and tasks (Model Context Protocol)
    Mcp(mcp::Args),
    /// Keep clusters by name
    #[command(subcommand)]
    Context(context::Command),
    /// Read commands from the terminal, with a history and completion
    ///
    /// What is said of the connection before `shell` holds for all of them. Ctrl-D ends it.
    #[command(after_help = "\
Example:
  quorate shell")]
    Shell,
    /// Print the completion script of a shell
    ///
    /// It completes commands, flags, and the keys and names of the cluster that the environment or the current context names.
    #[command(after_help = "Examples:
  source <(quorate completions bash)
  quorate completions bash > ~/.local/share/bash-completion/completions/quorate
  quorate completions fish > ~/.config/fish/completions/quorate.fish")]
    Completions {
        /// Which shell.
        #[arg(value_parser = ["bash", "zsh", "fish", "elvish", "powershell"])]
        shell: String,
    },
    /// Write the manual pages of all commands
    Man {
        /// Where to; made if it is not there.
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
}

/// What a command has at hand.
struct Context {
    client: Client,
    connection: Connection,
    shared: Shared,
}

/// What all commands heed.
struct Shared {
    output: Form,
    timeout: Duration,
    request_id: Option<RequestId>,
}

impl Context {
    /// The request id that was given, if one was.
    fn request_id(&self) -> Option<RequestId> {
        self.shared.request_id.clone()
    }

    /// The write under the id that was given, if one was.
    fn with_write_id<'a, A>(&self, write: Write<'a, A>) -> Write<'a, A> {
        write.given(self.request_id(), Write::request_id)
    }

    /// The change under the id that was given, if one was.
    fn with_id<'a, A>(&self, change: Pending<'a, A>) -> Pending<'a, A> {
        change.given(self.request_id(), Pending::request_id)
    }
}

/// By this variable the script of a shell asks for completions.
const COMPLETE_ENV: &str = "QUORATE_COMPLETE";

/// All commands, with their examples and what completes them.
fn commands() -> clap::Command {
    commands_with(&[])
}

/// Completes names by asking the cluster that these flags name.
fn commands_with(given: &[OsString]) -> clap::Command {
    groups::grouped(completion::with_completions(examples::with_examples(Cli::command()), given))
}

fn print_completions(shell: &str) -> Result<(), Failed> {
    let shells = clap_complete::env::Shells::builtins();
    let shell = shells.completer(shell).expect("clap takes no others");
    Ok(shell.write_registration(COMPLETE_ENV, "quorate", "quorate", "quorate", &mut std::io::stdout())?)
}

fn write_manual(directory: &Path) -> Result<(), Failed> {
    let written = std::fs::create_dir_all(directory).and_then(|()| clap_mangen::generate_to(commands(), directory));
    written.map_err(|error| Failed::other(format!("cannot write to {}: {error}", directory.display())))
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == work::GUARDIAN) {
        let mut next = || arguments.next().unwrap_or_default().to_string_lossy().into_owned();
        work::guard(&next(), &next());
        return ExitCode::SUCCESS;
    }
    CompleteEnv::with_factory(commands).var(COMPLETE_ENV).complete();
    let commands = commands();
    let typed = commands.clone().try_get_matches();
    let (mut cli, arguments) = match typed.and_then(|typed| {
        let arguments = Arguments::of(&commands, &typed);
        Ok((Cli::from_arg_matches(&typed)?, arguments))
    }) {
        Ok(read) => read,
        Err(error) => return refused(error),
    };
    if cli.common.json {
        cli.common.output = Some(Form::Json);
    }
    let mut form = cli.common.output.unwrap_or(Form::Text);
    match run(cli, &mut form) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => failed.report(form, &arguments),
    }
}

/// Says what is wrong with the command line, in the form asked for. Help and version come in this way too.
fn refused(error: clap::Error) -> ExitCode {
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        error.exit();
    }
    // Variables that are set would stand in the usage as required options, and the others would be left out.
    let without_variables = commands().mut_args(|argument| argument.env(None::<&'static str>));
    let error = match without_variables.try_get_matches() {
        Err(again) if again.kind() == error.kind() => again,
        _ => error,
    };
    match form_asked_for(std::env::args_os().skip(1)) {
        form @ (Form::Json | Form::Yaml) => {
            let text = error.render().to_string();
            Failed::usage(text.trim().strip_prefix("error: ").unwrap_or(text.trim()))
                .report(form, &Arguments::default())
        }
        Form::Text | Form::Table => error.exit(),
    }
}

/// The form of a command line that cannot be read as a whole.
fn form_asked_for(arguments: impl Iterator<Item = OsString>) -> Form {
    let mut asked = std::env::var(OUTPUT_ENV).unwrap_or_default();
    let mut words = arguments.map(|word| word.to_string_lossy().into_owned()).take_while(|word| word != "--");
    while let Some(word) = words.next() {
        match word.strip_prefix("--output=").or_else(|| word.strip_prefix("-o")) {
            _ if word == "--json" => asked = "json".into(),
            _ if word == "-o" || word == "--output" => asked = words.next().unwrap_or_default(),
            Some(form) => asked = form.trim_start_matches('=').to_owned(),
            None => {}
        }
    }
    Form::from_str(&asked, false).unwrap_or(Form::Text)
}

/// Runs a command. `form` becomes that of its context, where there is one.
fn run(cli: Cli, form: &mut Form) -> Result<(), Failed> {
    let Cli { common: Common { connection: flags, output, request_id, json: _ }, command } = cli;
    let command = match command {
        Command::Completions { shell } => return print_completions(&shell),
        Command::Man { directory } => return write_manual(&directory),
        Command::Shell => {
            let form = output.map(|form| [OsString::from("--output"), form.name().into()]);
            let given = flags.arguments();
            let commands = commands_with(&given);
            return shell::run(&[given, form.into_iter().flatten().collect()].concat(), commands);
        }
        Command::Context(command) => return context::run(&flags, output, command),
        command => command,
    };
    let connection = Connection::new(&flags)?;
    let output = output.or(connection.output).unwrap_or(Form::Text);
    *form = output;
    // One operation, one connection: a stream would take a round trip more to set up.
    let client = connection.client().protocol(Protocol::Http1).build()?;
    let shared = Shared { output, timeout: connection.timeout, request_id };
    let context = Context { client, connection, shared };
    let runtime = match &command {
        Command::Bench(args) => {
            tokio::runtime::Builder::new_multi_thread().worker_threads(args.workers()).enable_all().build()
        }
        _ => tokio::runtime::Builder::new_current_thread().enable_all().build(),
    };
    let runtime = runtime.map_err(|error| Failed::other(format!("cannot start: {error}")))?;
    let serves_agents = matches!(command, Command::Mcp(_));
    // Those that show themselves whether nodes answer say no more than that.
    let shows_nodes = matches!(command, Command::Status | Command::Top(_) | Command::Cluster(_));
    let patience = context.shared.timeout;
    let work = async {
        match command {
            Command::Entries(command) => entries::run(&context, command).await,
            Command::List(args) => listing::run(&context, args).await,
            Command::Edit(args) => edit::run(&context, args).await,
            Command::Update(args) => update::run(&context, args).await,
            Command::History(args) => past::history(&context, args).await,
            Command::Diff(args) => past::diff(&context, args).await,
            Command::Revert(args) => past::revert(&context, args).await,
            Command::Find(args) => find::run(&context, args).await,
            Command::Count(args) => find::run_count(&context, args).await,
            Command::Bulk(args) => bulk::run(&context, args).await,
            Command::Load(args) => load::run(&context, args).await,
            Command::Export(args) => export::run(&context, args).await,
            Command::Txn(args) => txn::run(&context, args).await,
            Command::UpdateWhere(args) => change_where::update(&context, args).await,
            Command::DeleteWhere(args) => change_where::delete(&context, args).await,
            Command::Claim(args) => claim::run(&context, args).await,
            Command::Watch(args) => watch::run(&context, args).await,
            Command::Collection(command) => collections::run(&context, command).await,
            Command::Sequence(command) => collections::run_sequence(&context, command).await,
            Command::Lock(args) => lock::run(&context, args).await,
            Command::Election(command) => election::run(&context, command).await,
            Command::Elect(args) => election_run::run(&context, args).await,
            Command::Session(command) => session::run(&context, command).await,
            Command::Barrier(command) => barrier::run(&context, command).await,
            Command::Latch(command) => latch::run(&context, command).await,
            Command::Task(command) => tasks::run(&context, command).await,
            Command::Backup(args) => backup::run(&context, args).await,
            Command::Node(command) => node::run(&context, command).await,
            Command::SupportBundle(args) => support::run(&context, args).await,
            Command::User(command) => users::run(&context, command).await,
            Command::Role(command) => roles::run(&context, command).await,
            Command::Quota(command) => quotas::run(&context, command).await,
            Command::Token(command) => tokens::run(&context, command).await,
            Command::Audit(args) => audit::run(&context, args).await,
            Command::Whoami => users::run_whoami(&context).await,
            Command::Cluster(command) => cluster::run(&context, command).await,
            Command::Status => status::run(&context).await,
            Command::Top(args) => top::run(&context, args).await,
            Command::Bench(args) => bench::run(&context, *args).await,
            Command::Mcp(args) => mcp::run(&context, args).await,
            Command::Completions { .. } | Command::Man { .. } | Command::Shell | Command::Context(_) => {
                unreachable!("they need no cluster, and are done")
            }
        }
    };
    let done = runtime.block_on(async {
        if shows_nodes { work.await } else { waiting::for_nodes(&context.client, output, patience, work).await }
    });
    if serves_agents {
        // A thread may still read standard input, which must not hold up the end.
        runtime.shutdown_background();
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All commands that can be run, by what is typed behind `quorate`.
    fn leaves(command: &clap::Command, path: &str, all: &mut Vec<(String, String)>) {
        if command.get_subcommands().next().is_none() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            all.push((path.to_owned(), help));
        }
        for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
            leaves(below, format!("{path} {}", below.get_name()).trim_start(), all);
        }
    }

    /// A fault in the wording of a help text.
    fn fault_of(help: &str) -> Option<String> {
        let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
        if help.contains("\\\"") {
            return Some("an escape is shown".into());
        }
        // Each terminal breaks a paragraph where it has to, so a break of its own stands in the middle of a line.
        let mut pairs = help.lines().zip(help.lines().skip(1));
        let (line, _) = pairs.find(|(line, next)| is_prose(line) && is_prose(next) && !line.ends_with(':'))?;
        Some(format!("a paragraph is broken behind `{line}`"))
    }

    fn helps(command: &mut clap::Command, faults: &mut Vec<String>) {
        let name = command.get_name().to_owned();
        let own = [command.get_after_help(), command.get_after_long_help(), command.get_long_about()];
        let arguments = command.get_arguments().flat_map(|argument| [argument.get_help(), argument.get_long_help()]);
        let texts: Vec<_> = own.into_iter().chain(arguments).flatten().map(ToString::to_string).collect();
        faults.extend(texts.iter().filter_map(|text| Some(format!("{name}: {}", fault_of(text)?))));
        let shown = command.render_long_help().to_string();
        if shown.contains("\\\"") {
            faults.push(format!("{name}: an escape is shown: {shown}"));
        }
        command.get_subcommands_mut().for_each(|below| helps(below, faults));
    }

    #[test]
    fn helps_are_broken_into_lines_once_and_show_no_escapes() {
        let mut faults = Vec::new();
        helps(&mut commands(), &mut faults);
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    #[test]
    fn every_command_is_in_one_group_of_the_help() {
        let mut known: Vec<_> = commands().get_subcommands().map(|command| command.get_name().to_owned()).collect();
        known.push("help".into());
        let mut grouped = groups::names();
        known.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, known);
        let help = commands().render_help().to_string();
        assert!(help.contains("\n  get             Read an entry\n") && help.contains("--endpoints"), "{help}");
    }

    #[test]
    fn the_form_of_a_wrong_command_line_is_known() {
        for (line, form) in [
            ("get -o json", Form::Json),
            ("get -ojson", Form::Json),
            ("get --output=yaml", Form::Yaml),
            ("get --json", Form::Json),
            ("lock l -- x -o json", Form::Text),
            ("get -o", Form::Text),
        ] {
            assert_eq!(form_asked_for(line.split(' ').map(OsString::from)), form, "{line}");
        }
    }

    #[test]
    fn every_command_has_an_example_and_every_example_can_be_typed() {
        let commands = commands();
        commands.clone().debug_assert();
        let mut all = Vec::new();
        leaves(&commands, "", &mut all);
        assert!(all.len() > 80, "{}", all.len());
        let groups = commands.get_subcommands().filter_map(|group| Some((group.get_name(), group.get_after_help()?)));
        let of_groups: Vec<_> = groups.map(|(name, help)| (name.to_owned(), help.to_string())).collect();
        let mut tried = 0;
        for (path, help) in all.iter().chain(&of_groups).chain([&(String::new(), AFTER_HELP.to_owned())]) {
            let examples: Vec<_> =
                help.lines().filter(|line| line.starts_with("  quorate ")).map(|line| line.trim()).collect();
            assert!(examples.iter().any(|line| line.contains(path.as_str())), "`{path}` has no example: {help}");
            for example in examples {
                let line = words::split(example).unwrap_or_else(|error| panic!("{path}: {example}: {error}"));
                let parsed = commands.clone().try_get_matches_from(&line.words);
                assert!(parsed.is_ok(), "{path}: {example}: {}", parsed.expect_err("refused"));
                tried += 1;
            }
        }
        assert!(tried > 100, "{tried}");
    }
}
