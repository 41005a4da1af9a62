//! Messages while a command waits: the holder it waits for, or that no node can be reached.
//!
//! Owns the words and when they are said: once it takes a while, and again when somebody else is waited for. For people only: whoever reads
//! JSON finds one document on standard error. Never decides how long is waited, and a fault of asking is not told.

use std::time::Duration;

use quorate_client::api::{ErrorCode, LockAnswer, LockHolder, LockWaiter};
use quorate_client::{Client, Error, NodeStatus};

use crate::fail::Failed;
use crate::form::Form;
use crate::{Context, output};

/// For so long nothing is said.
const SILENCE: Duration = Duration::from_millis(1_500);
/// Between two looks who is waited for.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Who is waited for.
struct Waited {
    /// Tokens of those, or how many: another one is told anew.
    who: Vec<u64>,
    text: String,
}

/// Says whom the work waits for while it does.
async fn told<T>(context: &Context, work: impl Future<Output = T>, whom: impl AsyncFn() -> Option<Waited>) -> T {
    if context.shared.output != Form::Text {
        return work.await;
    }
    tokio::select! {
        biased;
        done = work => done,
        () = tell(whom) => unreachable!("it never ends"),
    }
}

async fn tell(whom: impl AsyncFn() -> Option<Waited>) {
    let mut told = None;
    tokio::time::sleep(SILENCE).await;
    loop {
        if let Some(Waited { who, text }) = whom().await
            && told.as_ref() != Some(&who)
        {
            say!("{text}");
            told = Some(who);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Waits for a lock in the name of a session.
pub async fn for_lock<T>(context: &Context, name: &str, session: &str, work: impl Future<Output = T>) -> T {
    told(context, work, async || {
        let lock = context.client.lock(name).get().await.ok()?;
        let ahead = ahead(&lock.queue, session);
        let who = lock.holders.iter().map(|holder| holder.token).collect();
        Some(Waited { who, text: format!("waiting for `{name}`, {}{ahead}", held(&lock)) })
    })
    .await
}

/// Waits for leadership in the name of a session.
pub async fn for_leadership<T>(context: &Context, name: &str, session: &str, work: impl Future<Output = T>) -> T {
    told(context, work, async || {
        let election = context.client.election(name).get().await.ok()?;
        let ahead = ahead(&election.candidates, session);
        let led = match &election.leader {
            Some(leader) => {
                let (who, since) = (output::session(&leader.session, &leader.owner), output::millis(leader.age_ms));
                format!("led by {who} for {since}")
            }
            None => delayed(election.delay_left_ms),
        };
        let who = election.leader.iter().map(|leader| leader.term).collect();
        Some(Waited { who, text: format!("waiting to lead in `{name}`, {led}{ahead}") })
    })
    .await
}

/// Waits at a barrier until so many are there.
pub async fn at_barrier<T>(context: &Context, name: &str, parties: u32, work: impl Future<Output = T>) -> T {
    told(context, work, async || {
        let entered = context.client.barrier(name).await.ok()?.entered;
        Some(Waited { who: vec![entered.into()], text: format!("waiting at `{name}`, {entered} of {parties} there") })
    })
    .await
}

/// Waits for an entry: `what` names it, and what is to become of it.
pub async fn for_entry<T>(context: &Context, what: &str, work: impl Future<Output = T>) -> T {
    told(context, work, async || Some(Waited { who: Vec::new(), text: format!("waiting for {what}") })).await
}

/// Waits for a task that is due.
pub async fn for_task<T>(context: &Context, queue: &str, work: impl Future<Output = T>) -> T {
    told(context, work, async || {
        let stats = context.client.tasks(queue).stats().await.ok()?;
        let next = match (stats.next_at, stats.claimed) {
            (Some(at), _) => format!("the next is due at {at}"),
            (None, 0) => "none is scheduled".to_owned(),
            (None, claimed) => format!("none is scheduled, {claimed} worked on"),
        };
        // Told once: in a busy queue it changes all the time.
        Some(Waited { who: Vec::new(), text: format!("waiting for a task of `{queue}`, {next}") })
    })
    .await
}

/// Waits for nodes to be so far; `what` says how far.
pub async fn until_nodes<T>(
    context: &Context,
    what: &str,
    are: impl Fn(&NodeStatus) -> bool,
    work: impl Future<Output = T>,
) -> T {
    told(context, work, async || {
        let nodes = context.client.status_of_all().await.ok()?;
        let missing = (0_u64..).zip(&nodes).filter(|(_, node)| !are(node));
        let (who, addresses): (Vec<_>, Vec<_>) = missing.map(|(at, node)| (at, node.address.as_str())).unzip();
        let text = format!("waiting for {} to {what}", addresses.join(", "));
        (!who.is_empty()).then_some(Waited { who, text })
    })
    .await
}

/// Waits for a latch to open.
pub async fn for_latch<T>(context: &Context, name: &str, work: impl Future<Output = T>) -> T {
    told(context, work, async || {
        let latch = context.client.latch(name).get().await.ok()?;
        let text = format!("waiting for `{name}`, {} of {} left", latch.left, latch.count);
        Some(Waited { who: vec![latch.left], text })
    })
    .await
}

fn ahead(queue: &[LockWaiter], session: &str) -> String {
    match queue.iter().take_while(|waiter| waiter.session != session).count() {
        0 => String::new(),
        ahead => format!(", {ahead} ahead"),
    }
}

/// Who holds a lock, in words.
fn held(lock: &LockAnswer) -> String {
    let one = |holder: &LockHolder| {
        let since = output::millis(holder.age_ms);
        format!("{} for {since}", output::session(&holder.session, &holder.owner))
    };
    match lock.holders.as_slice() {
        [] => delayed(lock.delay_left_ms),
        [holder] => format!("held by {}", one(holder)),
        [holder, others @ ..] => format!("held by {} and {}", one(holder), output::count(others.len() as u64, "other")),
    }
}

fn delayed(left_ms: u64) -> String {
    match left_ms {
        0 => "held by nobody".to_owned(),
        left => format!("which nobody gets for {} after its holder died", output::millis(left)),
    }
}

/// Adds the holders of a lock to its refusal, since the node gives only their number, and `--max-waiters` if that was the reason.
pub async fn refused(context: &Context, name: &str, max_waiters: Option<u32>, error: Error) -> Failed {
    let mut problem = match error {
        Error::Rejected(problem) => problem,
        error => return error.into(),
    };
    if problem.code == ErrorCode::Locked
        && let Ok(lock) = context.client.lock(name).get().await
        && !lock.holders.is_empty()
    {
        let waiting = match lock.waiter_count {
            0 => "no one is waiting".to_owned(),
            1 => "1 is waiting".to_owned(),
            count => format!("{count} are waiting"),
        };
        // The refusal has the number of that moment. Some may have left since.
        let long = max_waiters.filter(|most| problem.waiters.is_some_and(|waiters| waiters >= u64::from(*most)));
        let long = long.map(|most| format!("; --max-waiters is {most}")).unwrap_or_default();
        problem.detail = format!("`{name}` is {}; {waiting}{long}", held(&lock));
    }
    Error::Rejected(problem).into()
}

/// Does the work of a command, and says so where no node answers meanwhile.
pub async fn for_nodes<T>(client: &Client, form: Form, patience: Duration, work: impl Future<Output = T>) -> T {
    if form != Form::Text {
        return work.await;
    }
    tokio::pin!(work);
    tokio::select! {
        biased;
        done = &mut work => return done,
        silent = silent(client) => {
            if let Some(why) = silent {
                say!("no node answers yet ({why}); each request is tried for {}", output::duration(patience));
            }
        }
    }
    work.await
}

/// Why no node answers, after a while; `None` where one does.
async fn silent(client: &Client) -> Option<String> {
    tokio::time::sleep(SILENCE).await;
    let nodes = client.status_of_all().await.ok()?;
    let mut last = None;
    for node in nodes {
        match node.status {
            Err(Error::Unavailable(gave_up)) => last = Some(gave_up.last.to_string()),
            _ => return None,
        }
    }
    last
}
