//! The steps of one file, one after the other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use quorate_client::Client;
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::calls::{self, Asked};
use crate::cluster::Cluster;
use crate::compare;
use crate::failure::{Failure, Outcome};
use crate::names;
use crate::suite::{File, Step, Verb};
use crate::things::Things;
use crate::variables::Variables;

/// Between two looks of a step that is right eventually.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long sessions may take to end.
const END_WITHIN: Duration = Duration::from_secs(10);

/// Runs a file: the outer error is of the cluster, the inner one of the file.
///
/// Each file has a runtime of its own. Whatever its client still does in the background ends with it, and meets no fault of the next.
pub fn file(cluster: &Cluster, file: &File) -> Result<Result<(), String>, String> {
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let mut run = Run::new(cluster, file)?;
        let outcome = run.steps(&file.steps).await;
        run.end().await?;
        Ok(outcome)
    })
}

struct Run<'c> {
    cluster: &'c Cluster,
    shared: Arc<Shared>,
    variables: Variables,
    background: BTreeMap<String, JoinHandle<Outcome>>,
}

/// What calls in the background have, too.
struct Shared {
    client: Client,
    things: Things,
}

impl<'c> Run<'c> {
    fn new(cluster: &'c Cluster, file: &File) -> Result<Self, String> {
        let client = Client::new(cluster.endpoints(file.endpoints)).map_err(|error| error.to_string())?;
        let mut variables = Variables::default();
        variables.set("p", json!(format!("rust{:012x}", rand::random::<u64>() >> 16)));
        let shared = Arc::new(Shared { client, things: Things::default() });
        Ok(Self { cluster, shared, variables, background: BTreeMap::new() })
    }

    async fn steps(&mut self, steps: &[Step]) -> Result<(), String> {
        for (n, step) in (1..).zip(steps) {
            self.step(step).await.map_err(|why| format!("step {n}: {why}"))?;
        }
        Ok(())
    }

    async fn step(&mut self, step: &Step) -> Result<(), String> {
        if step.background {
            return self.begin(step);
        }
        let until = Instant::now() + step.within();
        for i in 1..=step.repeat.unwrap_or(1) {
            self.variables.set("i", json!(i));
            self.until_right(step, until).await?;
        }
        Ok(())
    }

    /// Does the step once, or until it is as expected.
    async fn until_right(&mut self, step: &Step, until: Instant) -> Result<(), String> {
        let mut last = "not done in time".to_owned();
        loop {
            match tokio::time::timeout_at(until, self.once(step)).await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(why)) if !step.eventually => return Err(why),
                Ok(Err(why)) => last = why,
                Err(_late) => return Err(last),
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn once(&mut self, step: &Step) -> Result<(), String> {
        let with = self.variables.fill_fields(&step.with)?;
        let outcome = self.perform(step, with).await;
        self.judge(step, outcome)
    }

    async fn perform(&mut self, step: &Step, with: Value) -> Outcome {
        match step.verb().map_err(Failure::Suite)? {
            Verb::Call(name) => calls::call(name, self.shared.asked(step, with)).await,
            Verb::Start(name) => calls::start(name, self.shared.asked(step, with)).await,
            Verb::Next(name) => calls::next(&self.shared.things, name).await,
            Verb::Stop(name) => calls::stop(&self.shared.things, name),
            Verb::Fault(name) => self.cluster.fault(name, &with).await.map_err(Failure::Suite),
            Verb::Cancel(name) => self.cancel(name).await,
            Verb::Join(name) => self.join(name).await,
        }
    }

    /// Starts a call in the background: it ends with the first failure, or the last answer.
    fn begin(&mut self, step: &Step) -> Result<(), String> {
        let Verb::Call(call) = step.verb()? else { return Err("only a call runs in the background".to_owned()) };
        let name = step.names.clone().ok_or("a call in the background has a name")?;
        let (call, step, shared) = (call.to_owned(), step.clone(), Arc::clone(&self.shared));
        let mut variables = self.variables.clone();
        let work = async move {
            let mut last = Value::Null;
            for i in 1..=step.repeat.unwrap_or(1) {
                variables.set("i", json!(i));
                let with = variables.fill_fields(&step.with).map_err(Failure::Suite)?;
                last = calls::call(&call, shared.asked(&step, with)).await?;
            }
            Ok(last)
        };
        self.background.insert(name, tokio::spawn(work));
        Ok(())
    }

    /// Breaks a call in the background off; whatever it returns is right.
    async fn cancel(&mut self, name: &str) -> Outcome {
        let Some(call) = self.background.get_mut(name) else {
            return Err(Failure::Suite(format!("no call `{name}` is in the background")));
        };
        call.abort();
        let ended = call.await;
        self.background.remove(name);
        match ended {
            Err(error) if error.is_panic() => Err(Failure::Suite(format!("`{name}`: {error}"))),
            Ok(Err(failure @ Failure::Suite(_))) => Err(failure),
            Ok(_) | Err(_) => Ok(Value::Object(Map::new())),
        }
    }

    async fn join(&mut self, name: &str) -> Outcome {
        let Some(call) = self.background.get_mut(name) else {
            return Err(Failure::Suite(format!("no call `{name}` is in the background")));
        };
        let outcome = call.await.map_err(|error| Failure::Suite(format!("`{name}`: {error}")))?;
        self.background.remove(name);
        outcome
    }

    fn judge(&mut self, step: &Step, outcome: Outcome) -> Result<(), String> {
        match (&step.error, outcome) {
            (None, Ok(answer)) => self.judge_answer(step, &names::from_api(answer)),
            (None, Err(failure)) => Err(failure.to_string()),
            (Some(_), Ok(answer)) => Err(format!("it went well: {answer}")),
            (Some(expected), Err(failure)) => {
                let fields = names::from_api(failure.fields()?);
                compare::matches(&self.variables.fill(expected)?, &fields, "error")
                    .map_err(|why| format!("{why}: {failure}"))
            }
        }
    }

    fn judge_answer(&mut self, step: &Step, answer: &Value) -> Result<(), String> {
        if let Some(expected) = &step.expect {
            compare::matches(&self.variables.fill(expected)?, answer, "answer")?;
        }
        for (path, floor) in &step.greater {
            compare::is_greater(answer, path, &self.variables.fill(floor)?)?;
        }
        for (path, name) in &step.save {
            self.variables.set(name, compare::field(answer, path)?.clone());
        }
        Ok(())
    }

    /// Cancels what nobody waits for, makes the cluster whole, and ends the sessions there.
    async fn end(self) -> Result<(), String> {
        for call in self.background.values() {
            call.abort();
        }
        calls::process::restore().map_err(|error| error.to_string())?;
        self.cluster.fault("reset", &Value::Object(Map::new())).await?;
        for session in self.shared.things.sessions() {
            // It ends by itself otherwise; the next file has other names.
            let _ended = tokio::time::timeout(END_WITHIN, session.end()).await;
        }
        Ok(())
    }
}

impl Shared {
    fn asked<'a>(&'a self, step: &'a Step, with: Value) -> Asked<'a> {
        Asked { client: &self.client, things: &self.things, names: step.names.as_deref(), of: step.of.as_deref(), with }
    }
}
