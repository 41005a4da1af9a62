//! Drives a cluster by etcd's protocol, by etcd's JSON gateway or by Quorate's HTTP API: closed loop, the same keys, values and clients in
//! each, and the JSON of `quorate bench`.
//!
//! Owns the phases: it finds the members to ask, writes what is read, measures, and prints. Never starts or judges anything, which is
//! `scripts/bench`'s. It speaks each protocol with as little as that takes: or it would take more of the machine than what it measures.

mod args;
mod etcd;
mod gateway;
mod grpc;
mod http;
mod http1;
mod http2;
mod meter;
mod own;
mod work;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use clap::Parser;

use crate::args::{Args, Op, Protocol, Target};
use crate::gateway::Gateway;
use crate::http::Http;
use crate::meter::{Meter, Window};
use crate::own::Dialect;
use crate::work::{Client, Place, SharedLock, Work};

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let args = Args::parse();
    args.check()?;
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    // As it comes a busy thread looks at what does not fit into its own queue once in ten tasks: some clients would wait for their turn here.
    builder.global_queue_interval(2).enable_all().build()?.block_on(measure(args))
}

async fn measure(args: Args) -> Result<(), Failure> {
    let value = Bytes::from(vec![b'x'; args.value_size]);
    let all: Vec<&str> = args.endpoints.split(',').collect();
    let endpoints = if args.target == Target::Leader { vec![leader(&all, &args, &value).await?] } else { all };
    if !args.no_fill {
        fill(&endpoints, &args, &value).await?;
    }
    let window = Window::after(Duration::from_secs_f64(args.warmup), Duration::from_secs_f64(args.seconds));
    let meter = Arc::new(Meter::new(window));
    let lock = SharedLock::default();
    let work = |client| match args.op {
        Op::Cas => Work::Cas { client, token: 0 },
        Op::Session => Work::Session(None),
        Op::Lock => Work::Lock(Place::Away, lock.clone()),
        op => Work::Once(op),
    };
    run(&endpoints, args.clients, &args, &value, work, &meter).await?;
    println!("{}", meter.report(&args));
    Ok(())
}

/// Writes what will be read.
async fn fill(endpoints: &[&str], args: &Args, value: &Bytes) -> Result<(), Failure> {
    const WRITERS: usize = 64;
    const WRITERS_OF_BULKS: usize = 4;
    let meter = Arc::new(Meter::new(Window::ALWAYS));
    match args.op {
        Op::Get | Op::Range1000 if args.protocol == Protocol::Http => {
            let work = |number| Work::FillByBulks { next: number * work::BULK, step: WRITERS_OF_BULKS };
            run(endpoints, WRITERS_OF_BULKS, args, value, work, &meter).await
        }
        Op::Get | Op::Range1000 => {
            let work = |next| Work::Fill { next, step: WRITERS };
            run(endpoints, WRITERS, args, value, work, &meter).await
        }
        Op::Find => {
            let documents = Http::new(args, value.clone());
            documents.declare(endpoints[0]).await?;
            let work = |number| Work::FillDocuments { next: number * work::BULK, step: WRITERS_OF_BULKS };
            run(endpoints, WRITERS_OF_BULKS, args, value, work, &meter).await?;
            documents.wait_for_index(endpoints[0]).await
        }
        _ => Ok(()),
    }
}

/// How HTTP/1.1 is spoken; none for gRPC.
fn dialect(args: &Args, value: &Bytes) -> Option<Arc<dyn Dialect>> {
    match args.protocol {
        Protocol::Grpc => None,
        Protocol::Gateway => Some(Arc::new(Gateway(value.clone()))),
        Protocol::Http => Some(Arc::new(Http::new(args, value.clone()))),
    }
}

/// Has clients do their work, on as many connections as they need, over the members in turn.
async fn run(
    endpoints: &[&str],
    clients: usize,
    args: &Args,
    value: &Bytes,
    work: impl Fn(usize) -> Work,
    meter: &Arc<Meter>,
) -> Result<(), Failure> {
    let dialect = dialect(args, value);
    let on_connection = if dialect.is_some() { 1 } else { args.clients_per_connection.max(1) };
    let clients: Vec<Client> = (0..clients).map(|number| Client::new(number, work(number), args)).collect();
    let mut clients = clients.into_iter().peekable();
    let (mut tasks, mut turn) = (Vec::new(), endpoints.iter().cycle());
    while let (Some(endpoint), Some(_)) = (turn.next(), clients.peek()) {
        let mut of_connection: Vec<Client> = clients.by_ref().take(on_connection).collect();
        tasks.push(match (&dialect, of_connection.pop()) {
            (Some(dialect), Some(client)) => {
                let connection = http1::Connection::open(endpoint).await?;
                tokio::spawn(own::drive(connection, client, dialect.clone(), meter.clone()))
            }
            (_, last) => {
                of_connection.extend(last);
                let connection = http2::Connection::open(endpoint).await?;
                tokio::spawn(grpc::drive(connection, of_connection, value.clone(), meter.clone()))
            }
        });
    }
    for task in tasks {
        task.await??;
    }
    Ok(())
}

async fn leader<'a>(endpoints: &[&'a str], args: &Args, value: &Bytes) -> Result<&'a str, Failure> {
    let dialect = dialect(args, value);
    for endpoint in endpoints {
        let leads = match &dialect {
            Some(dialect) => own::is_leader(endpoint, dialect.as_ref()).await?,
            None => grpc::is_leader(endpoint).await?,
        };
        if leads {
            return Ok(endpoint);
        }
    }
    Err("no member says that it leads".into())
}
