//! `quorate`: the command line.
//!
//! Owns the table of commands and what they share: endpoints, deadline, output form, exit code. Each group of commands has
//! a file of its own.

mod audit;
mod backup;
mod barrier;
mod bench;
mod bulk;
mod change_where;
mod claim;
mod cluster;
mod collections;
mod criteria;
mod elect;
mod election;
mod entries;
mod export;
mod fail;
mod fence;
mod find;
mod form;
mod guarded;
mod latch;
mod listing;
mod load;
mod lock;
mod locks;
mod members;
mod output;
mod parse;
mod rates;
mod roles;
mod session;
mod status;
mod task_work;
mod tasks;
mod tokens;
mod top;
mod txn;
mod users;
mod watch;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory, Parser, Subcommand};
use quorate_client::{
    CA_ENV, CERT_ENV, Client, ClientBuilder, DEFAULT_ENDPOINTS, ENDPOINTS_ENV, KEY_ENV, Pending, Protocol, RequestId,
    TOKEN_ENV, TOKEN_FILE_ENV,
};

use fail::Failed;
use form::Form;

/// Talk to a Quorate cluster.
///
/// Every command asks the nodes in turn until one can answer, within the deadline. Every write carries a request id and is
/// applied at most once, however often it is sent.
#[derive(Debug, Parser)]
#[command(name = "quorate", version, after_help = AFTER_HELP, max_term_width = 120)]
struct Cli {
    #[command(flatten)]
    shared: Shared,
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Exit codes:
  0  done
  1  error: the cluster could not be reached, gave up, refused, or the kept_outcome of a write is unknown
  2  usage: the command line is wrong, nothing was sent
  3  condition not met: the key is not as the command needs it (missing, exists already, changed since its cas was read);
     of several things some were refused; there was nothing to claim; a lock was not got in time

Examples:
  quorate put stock/apples 5
  quorate get stock/apples
  quorate cas stock/apples 17 4          # only if it has not changed since cas 17
  quorate ls stock/
  quorate find stock/ --where 'left lt 5'
  quorate watch --prefix stock/
  quorate status";

/// What all commands understand.
#[derive(Debug, clap::Args)]
struct Shared {
    /// Nodes, host:port, separated by commas; https:// may stand before each.
    #[arg(long, global = true, env = ENDPOINTS_ENV, default_value = DEFAULT_ENDPOINTS, value_name = "LIST")]
    endpoints: String,
    /// Deadline of each request, retries included; like 500ms, 10s, 2m.
    #[arg(long, global = true, default_value = "10s", value_parser = parse::duration, value_name = "TIME")]
    timeout: Duration,
    /// `text` for people, `json` for programs.
    #[arg(long, global = true, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    output: Form,
    /// PEM file with the CAs whose certificates of nodes are believed: the nodes are then reached by TLS.
    #[arg(long = "ca", global = true, env = CA_ENV, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// PEM file with the certificate that nodes are shown: who this is.
    #[arg(long = "cert", global = true, env = CERT_ENV, requires = "tls_key", value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// PEM file with its private key.
    #[arg(long = "key", global = true, env = KEY_ENV, requires = "tls_cert", value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// File with the token that says who this is; without it the one in the environment variable QUORATE_TOKEN.
    #[arg(long, global = true, env = TOKEN_FILE_ENV, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Id of the write instead of a random one: to repeat a write whose outcome stayed unknown.
    #[arg(long, global = true, value_parser = parse::request_id, value_name = "ID")]
    request_id: Option<RequestId>,
}

impl Shared {
    /// A client as it was asked for, to be refined.
    fn client(&self) -> ClientBuilder {
        let mut builder = Client::builder().endpoints(&self.endpoints).timeout(self.timeout);
        if let Some(ca) = &self.tls_ca {
            builder = builder.ca_file(ca);
        }
        if let (Some(cert), Some(key)) = (&self.tls_cert, &self.tls_key) {
            builder = builder.identity_files(cert, key);
        }
        // The token itself is no argument: whoever lists processes would read it.
        match (&self.token_file, std::env::var(TOKEN_ENV)) {
            (Some(file), _) => builder.token_file(file),
            (None, Ok(token)) => builder.token(token),
            (None, Err(_)) => builder,
        }
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(flatten)]
    Entries(entries::Command),
    /// List keys that begin with PREFIX, and their values
    Ls(listing::Args),
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
    /// Run a command while a lock is held
    Lock(lock::Args),
    /// Look at locks, release them
    #[command(subcommand)]
    Locks(locks::Command),
    /// Run a command while this process leads
    Elect(elect::Args),
    /// Look at elections, proclaim, resign
    #[command(subcommand)]
    Election(election::Command),
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
    /// Make, show and remove users
    #[command(subcommand)]
    User(users::Command),
    /// Make, show and remove roles: what users may do
    #[command(subcommand)]
    Role(roles::Command),
    /// Give users tokens, list and remove them
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
    /// Exit code 1 if no node answers.
    Status,
    /// Show what the nodes are doing, again and again
    ///
    /// Asks the endpoints for their metrics. Rates are of the time between two looks.
    Top(top::Args),
    /// Write the whole cluster into a file, for a restore
    Backup(backup::Args),
    /// Measure the cluster with closed-loop clients
    Bench(Box<bench::Args>),
    /// Print the completion script of a shell
    ///
    /// For bash: `source <(quorate completions bash)`
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
}

/// What a command has at hand.
struct Context {
    client: Client,
    shared: Shared,
}

impl Context {
    /// The change under the id that was given, if one was.
    fn with_id<'a, A>(&self, change: Pending<'a, A>) -> Pending<'a, A> {
        match &self.shared.request_id {
            Some(id) => change.request_id(id.clone()),
            None => change,
        }
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Command::Completions { shell } = cli.command {
        clap_complete::generate(shell, &mut Cli::command(), "quorate", &mut std::io::stdout());
        return ExitCode::SUCCESS;
    }
    let form = cli.shared.output;
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => failed.report(form),
    }
}

fn run(cli: Cli) -> Result<(), Failed> {
    let Cli { shared, command } = cli;
    // One operation, one connection: a stream would take a round trip more to set up.
    let client = shared.client().protocol(Protocol::Http1).build()?;
    let context = Context { client, shared };
    let runtime = match &command {
        Command::Bench(args) => {
            tokio::runtime::Builder::new_multi_thread().worker_threads(args.workers()).enable_all().build()
        }
        _ => tokio::runtime::Builder::new_current_thread().enable_all().build(),
    };
    let runtime = runtime.map_err(|error| Failed::other(format!("cannot start: {error}")))?;
    runtime.block_on(async {
        match command {
            Command::Entries(command) => entries::run(&context, command).await,
            Command::Ls(args) => listing::run(&context, args).await,
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
            Command::Locks(command) => locks::run(&context, command).await,
            Command::Elect(args) => elect::run(&context, args).await,
            Command::Election(command) => election::run(&context, command).await,
            Command::Session(command) => session::run(&context, command).await,
            Command::Barrier(command) => barrier::run(&context, command).await,
            Command::Latch(command) => latch::run(&context, command).await,
            Command::Task(command) => tasks::run(&context, command).await,
            Command::Backup(args) => backup::run(&context, args).await,
            Command::User(command) => users::run(&context, command).await,
            Command::Role(command) => roles::run(&context, command).await,
            Command::Token(command) => tokens::run(&context, command).await,
            Command::Audit(args) => audit::run(&context, args).await,
            Command::Whoami => users::run_whoami(&context).await,
            Command::Cluster(command) => cluster::run(&context, command).await,
            Command::Status => status::run(&context).await,
            Command::Top(args) => top::run(&context, args).await,
            Command::Bench(args) => bench::run(&context, *args).await,
            Command::Completions { .. } => unreachable!("completions need no cluster and were printed before"),
        }
    })
}
