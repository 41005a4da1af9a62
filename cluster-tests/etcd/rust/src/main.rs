//! What the crate etcd-client offers, as cases that say what they saw: one line each, "ok NAME" or "failed NAME: WHY". Where the
//! environment has passwords, only those that log in.

mod cluster;
mod entries;
mod leases;
mod login;
mod watches;

use std::future::Future;
use std::panic;
use std::pin::Pin;
use std::time::{Duration, Instant};

use etcd_client::{Client, Error};

/// No case takes longer, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

type Outcome = Result<(), Error>;
type Case = (&'static str, fn(Context) -> Pin<Box<dyn Future<Output = Outcome> + Send>>);

/// What a case gets: a client of its own, and a prefix that nobody else writes below.
struct Context {
    etcd: Client,
    at: String,
    servers: Vec<String>,
}

impl Context {
    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.at)
    }

    async fn put(&mut self, name: &str, value: &str) -> Result<i64, Error> {
        let key = self.key(name);
        let answer = self.etcd.put(key, value, None).await?;
        Ok(answer.header().expect("a header").revision())
    }

    async fn value(&mut self, name: &str) -> Result<Option<String>, Error> {
        let key = self.key(name);
        let answer = self.etcd.get(key, None).await?;
        Ok(answer.kvs().first().map(|entry| String::from_utf8_lossy(entry.value()).into_owned()))
    }
}

/// The cases named, each under its name.
macro_rules! cases {
    ($($case:ident),* $(,)?) => {
        pub const CASES: &[crate::Case] = &[$((stringify!($case), |context| Box::pin($case(context)))),*];
    };
}
pub(crate) use cases;

/// What a call is refused with; etcd's codes and texts are part of its interface.
fn refused<T>(answer: Result<T, Error>) -> String {
    match answer {
        Ok(_) => panic!("it was not refused"),
        Err(Error::GRpcStatus(status)) => format!("{:?}: {}", status.code(), status.message()),
        Err(other) => other.to_string(),
    }
}

/// Asks again until the answer is yes, for 20 seconds at most.
async fn eventually<F, Fut>(what: &str, mut condition: F) -> Outcome
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<bool, Error>>,
{
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition().await? {
        assert!(Instant::now() < deadline, "{what}: not within 20 s");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

async fn run(servers: &[String], (name, case): Case) {
    let since_boot = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_nanos();
    let outcome = match Client::connect(servers, None).await {
        Ok(etcd) => {
            let context = Context { etcd, at: format!("/rust/{name}-{since_boot}/"), servers: servers.to_vec() };
            tokio::time::timeout(PATIENCE, tokio::spawn(case(context))).await
        }
        Err(error) => Ok(Ok(Err(error))),
    };
    match outcome {
        Ok(Ok(Ok(()))) => println!("ok {name}"),
        Ok(Ok(Err(error))) => println!("failed {name}: {error}"),
        // What it panicked with was printed where it happened.
        Ok(Err(panicked)) => println!("failed {name}: {panicked}"),
        Err(_) => println!("failed {name}: hangs: no end after {PATIENCE:?}"),
    }
}

#[tokio::main]
async fn main() {
    let servers: Vec<String> =
        std::env::args().nth(1).expect("addresses of servers").split(',').map(str::to_owned).collect();
    panic::set_hook(Box::new(|info| {
        let what = info.payload_as_str().unwrap_or("panicked").replace('\n', " ");
        println!("    {} {what}", info.location().map(ToString::to_string).unwrap_or_default());
    }));
    let asked_for = match std::env::var_os("CONFORMANCE_ROOT_PASSWORD") {
        Some(_) => vec![login::CASES],
        None => vec![entries::CASES, watches::CASES, leases::CASES, cluster::CASES],
    };
    for cases in asked_for {
        for case in cases {
            run(&servers, *case).await;
        }
    }
}
