//! The clients: what each sends, one operation after the other.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quorate_client::api::{Criterion, ErrorCode, Operator, Problem, code_name};
use quorate_client::{Cas, Client, Error, Value};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use tokio::task::JoinSet;

use super::mix::{Kind, Mix};
use super::progress::Progress;
use super::tally::Tally;
use crate::fail::Failed;

/// What all clients do.
pub struct Plan {
    pub seed: u64,
    pub mix: Mix,
    pub prefix: String,
    pub keys: u64,
    pub value_size: usize,
    /// Random letters to cut values from, twice as long as a value.
    pub letters: Vec<u8>,
    pub local_reads: bool,
    pub shared: bool,
}

/// So many random letters.
pub fn letters(seed: u64, count: usize) -> Vec<u8> {
    let mut random = SmallRng::seed_from_u64(seed);
    (0..count).map(|_| random.random_range(b'a'..=b'z')).collect()
}

/// Writes every key once, so that reads find something. Ends early when everything is stopped.
pub async fn fill(
    client: &Client,
    plan: &Arc<Plan>,
    tally: &Arc<Tally>,
    clients: u32,
    progress: &Progress,
) -> Result<(), Failed> {
    let next = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for number in 0..clients {
        let (mut worker, next, tally) = (Worker::new(client, plan, number), next.clone(), tally.clone());
        tasks.spawn(async move {
            while tally.is_running() {
                let key = next.fetch_add(1, Ordering::Relaxed);
                if key >= worker.plan.keys {
                    break;
                }
                worker.put(key).await?;
            }
            Ok::<_, Error>(())
        });
    }
    let mut tick = tokio::time::interval(Duration::from_millis(200));
    loop {
        tokio::select! {
            joined = tasks.join_next() => match joined {
                None => return Ok(()),
                Some(Ok(filled)) => filled?,
                Some(Err(error)) => return Err(Failed::other(format!("a client failed: {error}"))),
            },
            _ = tick.tick() => progress.at(next.load(Ordering::Relaxed).min(plan.keys)),
        }
    }
}

/// Starts the clients; they run until the tally is stopped.
pub fn start(client: &Client, plan: &Arc<Plan>, tally: &Arc<Tally>, clients: u32) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for number in 0..clients {
        let (mut worker, tally) = (Worker::new(client, plan, number), tally.clone());
        tasks.spawn(async move {
            while tally.is_running() {
                worker.step(&tally).await;
            }
        });
    }
    tasks
}

/// Waits for the operations in flight.
pub async fn finish(mut clients: JoinSet<()>, timeout: Duration) -> Result<(), Failed> {
    let all = async {
        while let Some(ended) = clients.join_next().await {
            ended.map_err(|error| Failed::other(format!("a client failed: {error}")))?;
        }
        Ok(())
    };
    // Those that do not end have been counted as far as they counted; they end with the process.
    tokio::time::timeout(timeout, all).await.unwrap_or(Ok(()))
}

/// One client.
struct Worker {
    client: Client,
    plan: Arc<Plan>,
    number: u32,
    random: SmallRng,
    /// Key of the operation; kept for its buffer.
    key: String,
    counter: Counter,
}

/// The entry of the cas operations as this client knows it.
#[derive(Default)]
struct Counter {
    cas: Option<Cas>,
    count: u64,
}

impl Worker {
    fn new(client: &Client, plan: &Arc<Plan>, number: u32) -> Self {
        let random = SmallRng::seed_from_u64(plan.seed.wrapping_add(u64::from(number)));
        let (client, plan) = (client.clone(), plan.clone());
        Self { client, plan, number, random, key: String::new(), counter: Counter::default() }
    }

    async fn step(&mut self, tally: &Tally) {
        let kind = self.plan.mix.kind_at(self.random.random_range(0..self.plan.mix.total()));
        let key = self.random.random_range(0..self.plan.keys);
        let started = Instant::now();
        let outcome = match kind {
            Kind::Put => self.put(key).await,
            Kind::Get => self.get(key).await,
            Kind::Cas => self.cas().await,
            Kind::Update => self.update().await,
        };
        match outcome {
            Ok(()) => tally.on_done(self.number, kind, started.elapsed()),
            Err(Error::Rejected(problem)) if kind == Kind::Cas && self.learn(&problem) => {
                tally.on_mismatch(self.number);
            }
            Err(error) => {
                self.counter.cas = None;
                tally.on_error(self.number, name(&error));
            }
        }
    }

    async fn put(&mut self, key: u64) -> Result<(), Error> {
        self.name_key(key);
        let value = self.value();
        self.client.put(self.key.as_str(), value).await.map(drop)
    }

    async fn get(&mut self, key: u64) -> Result<(), Error> {
        self.name_key(key);
        let get = self.client.get(&self.key);
        let get = if self.plan.local_reads { get.local() } else { get };
        get.await.map(drop)
    }

    /// One turn of an optimistic update: a write on the token that the last answer brought.
    async fn cas(&mut self) -> Result<(), Error> {
        let key = match self.plan.shared {
            true => format!("{}cas/shared", self.plan.prefix),
            false => format!("{}cas/{}", self.plan.prefix, self.number),
        };
        let value = Value::json_text(format!("{{\"count\":{}}}", self.counter.count + 1));
        let answer = match self.counter.cas.take() {
            Some(cas) => self.client.cas(key, cas, value).await?,
            None => self.client.insert(key, value).await?,
        };
        self.counter.cas = answer.cas;
        self.counter.count += 1;
        Ok(())
    }

    /// Counts in a document of this client's own, on a condition that always holds. The document has the size of a value.
    async fn update(&mut self) -> Result<(), Error> {
        let key = format!("{}doc/{}", self.plan.prefix, self.number);
        let count = Value::json_text(r#"[{"op":"inc","path":"count","value":1}]"#);
        let condition = Criterion::new("count", Operator::Gte, 0);
        match self.client.patch(key.as_str(), count).only_if(condition).await {
            Err(Error::Rejected(problem)) if problem.code == ErrorCode::NotFound => {
                let mut document = br#"{"count":1,"fill":"#.to_vec();
                self.write_value(&mut document);
                document.push(b'}');
                let document = Value::json_text(document);
                self.client.insert(key, document).await.map(drop)
            }
            outcome => outcome.map(drop),
        }
    }

    /// Takes the entry as it is from a refusal. Whether that is what was refused.
    fn learn(&mut self, problem: &Problem) -> bool {
        let lost = matches!(problem.code, ErrorCode::CasMismatch | ErrorCode::AlreadyExists | ErrorCode::NotFound);
        if let Some(current) = problem.current.as_ref().filter(|_| lost) {
            #[derive(serde::Deserialize)]
            struct Count {
                count: u64,
            }
            self.counter.cas = current.cas;
            self.counter.count = current.json::<Count>().map_or(0, |counter| counter.count);
        }
        lost
    }

    fn name_key(&mut self, key: u64) {
        self.key.clear();
        write!(self.key, "{}{key}", self.plan.prefix).expect("writing to a String cannot fail");
    }

    fn value(&mut self) -> Value {
        let mut text = Vec::with_capacity(self.plan.value_size);
        self.write_value(&mut text);
        Value::json_text(text)
    }

    /// Appends a JSON string of random letters, exactly as long as asked for.
    fn write_value(&mut self, text: &mut Vec<u8>) {
        let inner = self.plan.value_size - 2;
        let from = self.random.random_range(0..self.plan.letters.len() - inner);
        text.push(b'"');
        text.extend_from_slice(&self.plan.letters[from..from + inner]);
        text.push(b'"');
    }
}

/// What an error is counted as.
fn name(error: &Error) -> String {
    match error {
        Error::Rejected(problem) => code_name(problem.code),
        Error::Unavailable(_) => "unavailable".into(),
        Error::Unknown(_) => "fate_unknown".into(),
        Error::Protocol { .. } => "protocol".into(),
        Error::Contended { .. }
        | Error::Session { .. }
        | Error::Invalid(_)
        | Error::File { .. }
        | Error::Decode { .. }
        | Error::Value(_) => "client".into(),
        _ => "other".into(),
    }
}
