//! The Rust examples of `docs/guide.md`, as a program: `cargo run --example guide` runs them against the local cluster, or the one
//! in `QUORATE_ENDPOINTS`.
//!
//! The lines of each block of the guide stand here as they are there, which a test of `cluster-tests` holds both to; that
//! test also runs this program. It creates keys, so it runs once on a cluster.

use std::error::Error as StdError;
use std::pin::pin;
use std::time::Duration;

use futures::TryStreamExt;
use quorate_client::api::{CollectionRules, Criterion, ErrorCode, Operator};
use quorate_client::{Claimed, Client, Document, Error, Op, RequestId, SessionState, Txn, Value as Content, Watched};
use serde_json::{Value, json};

type Outcome = Result<(), Box<dyn StdError>>;

#[tokio::main]
async fn main() -> Outcome {
    let client = Client::from_env()?;
    client.put("orders/o1", Content::json_text(r#"{"status":"new","lines":2}"#)).await?;
    for number in 1..=3 {
        client.put_json(format!("parts/p{number}"), &json!({"n": number})).await?;
    }
    read(&client).await?;
    life_cycle(&client).await?;
    lost_update(&client).await?;
    merge_patch(&client).await?;
    time_to_live(&client).await?;
    request_ids(&client).await?;
    dry_run(&client).await?;
    list(&client).await?;
    conditions(&client).await?;
    update_operators(&client).await?;
    document_lock(&client).await?;
    find(&client).await?;
    bulk(&client).await?;
    transaction(&client).await?;
    change_where(&client).await?;
    collection(&client).await?;
    claim(&client).await?;
    sessions(&client).await?;
    fence(&client).await?;
    semaphore(&client).await?;
    election(&client).await?;
    meetings(&client).await?;
    tasks(&client).await?;
    watch(&client).await?;
    mirror(&client).await
}

async fn read(client: &Client) -> Outcome {
    let order: Option<Document<Value>> = client.get_json("orders/o1").await?;
    let order = order.expect("curl wrote it above");
    assert_eq!(order.content["status"], "new");
    let token = order.entry.cas.expect("nobody has locked it");
    // As it was, and from the nearest node whatever that has.
    let before = client.get("orders/o1").revision(order.entry.mod_revision).await?;
    let maybe_old = client.get("orders/o1").local().await?;
    assert_eq!(before.and_then(|entry| entry.cas), Some(token));
    println!("a local read found {maybe_old:?}");
    Ok(())
}

async fn life_cycle(client: &Client) -> Outcome {
    let created = client.insert_json("orders/o8", &json!({"status": "new"})).await?;
    let token = created.cas.expect("an entry that is there has a token");
    client.cas_json("orders/o8", token, &json!({"status": "paid"})).await?;
    match client.cas_json("orders/o8", token, &json!({"status": "lost"})).await {
        Err(Error::Rejected(problem)) if problem.code == ErrorCode::CasMismatch => {
            let current = problem.current.expect("the entry as it is");
            assert_eq!(current.json::<Value>()?["status"], "paid");
        }
        other => panic!("an old token was taken: {other:?}"),
    }
    client.remove("orders/o8").await?;
    Ok(())
}

async fn lost_update(client: &Client) -> Outcome {
    client.put_json("orders/o43", &json!({"status": "new"})).await?;
    let add = |field: &'static str| {
        client.update("orders/o43", move |order: Option<Value>| {
            let mut order = order?;
            order[field] = json!(true);
            Some(order)
        })
    };
    // Eight writers at once, each with a field of its own: none is lost.
    let fields = ["a", "b", "c", "d", "e", "f", "g", "h"];
    futures::future::try_join_all(fields.map(|field| add(field).into_future())).await?;
    let order = client.get_json::<Value>("orders/o43").await?.expect("it was written above");
    assert!(fields.iter().all(|field| order.content[field] == true));
    Ok(())
}

async fn merge_patch(client: &Client) -> Outcome {
    client.put_json("orders/o51", &json!({"status": "new", "note": "call first"})).await?;
    client.patch_json("orders/o51", &json!({"status": "paid", "note": null})).await?;
    let order = client.get_json::<Value>("orders/o51").await?.expect("it was written above");
    assert_eq!(order.content, json!({"status": "paid"}));
    Ok(())
}

async fn time_to_live(client: &Client) -> Outcome {
    client.put_json("sessions/s3", &json!({"user": "cid"})).ttl(Duration::from_secs(60)).await?;
    let touched = client.touch("sessions/s3", Duration::from_secs(3600)).await?;
    assert!(touched.ttl_ms.is_some_and(|left| left > 3_500_000));
    let session = client.get_and_touch("sessions/s3", Duration::from_secs(60)).await?;
    assert_eq!(session.json::<Value>()?["user"], "cid");
    assert!(session.ttl_ms.is_some_and(|left| left <= 60_000));
    Ok(())
}

async fn request_ids(client: &Client) -> Outcome {
    let id: RequestId = "o62-create".parse()?;
    let write = || client.insert("orders/o62", Content::json_text(r#"{"status":"new"}"#)).request_id(id.clone());
    let first = write().await?;
    let again = write().await?;
    assert!(again.replayed && again.cas == first.cas);
    let outcome = client.request_outcome(&id).await?.expect("it was decided");
    assert_eq!(outcome.cas, first.cas);
    Ok(())
}

async fn dry_run(client: &Client) -> Outcome {
    let would = client.remove("orders/o62").dry_run().await?;
    assert!(would.dry_run);
    assert!(client.get("orders/o62").await?.is_some());
    Ok(())
}

async fn list(client: &Client) -> Outcome {
    let mut pages = pin!(client.list("parts/").limit(2).pages());
    let mut keys = Vec::new();
    while let Some(page) = pages.try_next().await? {
        keys.extend(page.entries.into_iter().map(|entry| entry.key));
    }
    assert_eq!(keys, ["parts/p1", "parts/p2", "parts/p3"]);
    assert_eq!(client.list("parts/").count().await?.count, 3);
    Ok(())
}

async fn conditions(client: &Client) -> Outcome {
    client.put_json("orders/o91", &json!({"status": "pending"})).await?;
    let is_pending = Criterion::new("status", Operator::Eq, "pending");
    let paid = Content::json_text(r#"{"status":"paid"}"#);
    let pay = || client.patch("orders/o91", paid.clone()).only_if(is_pending.clone());
    pay().await?;
    match pay().await {
        Err(Error::Rejected(problem)) => assert_eq!(problem.failed[0].pointer, "/if/0"),
        other => panic!("paid twice: {other:?}"),
    }
    Ok(())
}

async fn update_operators(client: &Client) -> Outcome {
    client.put_json("stock/plums", &json!({"left": 2})).await?;
    let sell = Content::json(&json!([{"op": "inc", "path": "left", "value": -1}]))?;
    client.patch("stock/plums", sell).only_if(Criterion::new("left", Operator::Gt, 0)).await?;
    let left = client.get_json::<Value>("stock/plums").await?.expect("it was written above").content;
    assert_eq!(left, json!({"left": 1}));
    Ok(())
}

async fn document_lock(client: &Client) -> Outcome {
    client.put_json("orders/o96", &json!({"status": "new"})).await?;
    let locked = client.get_and_lock_entry("orders/o96", Duration::from_secs(20)).await?;
    assert_eq!((locked.json::<Value>()?, locked.lock_ms), (json!({"status": "new"}), Some(20_000)));
    let key = locked.cas.expect("the key of the lock");
    assert!(client.put("orders/o96", Content::json_text("1")).await.is_err());
    let next = client.lock_entry("orders/o96", Duration::from_secs(5)).wait(Duration::from_millis(20));
    assert!(next.await.is_err(), "nobody gave it up in time");
    client.cas_json("orders/o96", key, &json!({"status": "paid"})).await?;
    Ok(())
}

async fn find(client: &Client) -> Outcome {
    for (name, priority) in [("q1", 1), ("q2", 5)] {
        client.put_json(format!("queue/{name}"), &json!({"priority": priority})).await?;
    }
    let urgent = client.find("queue/").filter("priority", Operator::Gte, 5).page().await?;
    assert_eq!(urgent.entries[0].key, "queue/q2");
    assert_eq!(client.find("queue/").count().await?.count, 2);
    Ok(())
}

async fn bulk(client: &Client) -> Outcome {
    let insert = |n: u32| Op::insert(format!("people/p{n}"), Content::json_text(format!(r#"{{"n":{n}}}"#)));
    let first = client.bulk().extend((1..=3).map(insert)).await?;
    assert_eq!((first.applied, first.skipped), (3, 0));
    let again = client.bulk().extend((1..=3).map(insert)).push(Op::remove("people/p9")).failures_only().await?;
    assert_eq!((again.skipped, again.failed, again.results[0].n), (3, 1, 3));
    Ok(())
}

async fn transaction(client: &Client) -> Outcome {
    client.put_json("accounts/ann", &json!({"balance": 50})).await?;
    client.put_json("accounts/ben", &json!({"balance": 10})).await?;
    let add = |key: &str, amount: i64| -> Result<Op, Error> {
        Ok(Op::patch(key, Content::json(&json!([{"op": "inc", "path": "balance", "value": amount}]))?))
    };
    let pay = |amount: i64| -> Result<Txn<&Client>, Error> {
        let txn = client.txn().when("accounts/ann").matches(Criterion::new("balance", Operator::Gte, amount));
        Ok(txn.then(add("accounts/ann", -amount)?).then(add("accounts/ben", amount)?))
    };
    assert!(pay(40)?.await?.succeeded);
    let short = pay(40)?.await?;
    assert_eq!((short.succeeded, short.failed[0].key.text()), (false, Some("accounts/ann")));
    let ben = client.get_json::<Value>("accounts/ben").await?.expect("it was written above").content;
    assert_eq!(ben, json!({"balance": 50}));
    Ok(())
}

async fn change_where(client: &Client) -> Outcome {
    let raise = Content::json(&json!([{"op": "inc", "path": "n", "value": 10}]))?;
    let raised = client.patch_where("people/", raise).filter("n", Operator::Gte, 2).await?;
    assert_eq!((raised.matched, raised.applied), (2, 2));
    let parts: Vec<_> = client.delete_where("people/").parts().try_collect().await?;
    assert_eq!(parts.iter().map(|part| part.applied).sum::<u64>(), 3);
    Ok(())
}

async fn collection(client: &Client) -> Outcome {
    let rules: CollectionRules = serde_json::from_value(json!({
        "fields": {"number": {"type": "long", "sequence": "members"}},
        "indexes": [{"fields": ["email"], "unique": true}],
    }))?;
    client.collection("members").put(rules).if_absent().await?;
    let member = Content::json(&json!({"email": "ann@example.org"}))?;
    client.insert("members/ann", member.clone()).await?;
    match client.insert("members/ben", member).await {
        Err(Error::Rejected(problem)) => assert_eq!(problem.code, ErrorCode::UniqueViolation),
        other => panic!("two have the same address: {other:?}"),
    }
    assert_eq!(client.sequence("members").get().await?.value, 1);
    let taken = client.sequence("tickets").next(10).await?;
    assert_eq!((taken.first, taken.last), (1, 10));
    Ok(())
}

async fn claim(client: &Client) -> Outcome {
    for n in 1..=3 {
        client.put_json(format!("letters/l{n}"), &json!({"n": n})).await?;
    }
    let claims = client.claim("letters/").order_by("-n").limit(2).lock_time(Duration::from_secs(20)).await?;
    let claimed: Vec<Claimed> = claims.into_iter().collect();
    assert_eq!(claimed[0].json::<Value>()?["n"], 3);
    claimed[0].complete().await?;
    claimed[1].release().await?;
    // The one that was given back, and the one that nobody had.
    assert_eq!(client.claim("letters/").limit(10).await?.len(), 2);
    Ok(())
}

async fn sessions(client: &Client) -> Outcome {
    let session = client.session().ttl(Duration::from_secs(5)).owner("web-3").label("zone", "a").await?;
    client.put("services/web-3", Content::json("10.0.0.9:8080")?).session(&session).await?;
    assert_eq!(session.state(), SessionState::Ok);
    session.end().await?;
    assert!(client.get("services/web-3").await?.is_none());
    Ok(())
}

async fn fence(client: &Client) -> Outcome {
    let session = client.session().await?;
    let lock = session.lock("books").wait(Duration::from_secs(5)).acquire().await?;
    println!("others see the token {}", lock.token()?);
    client.put_json("books/total", &json!({"sum": 4})).guarded_by(&lock).await?;
    let late = lock.guard();
    lock.release().await?;
    match client.put("books/total", Content::json_text("0")).guarded_by(late).await {
        Err(Error::Rejected(problem)) => assert_eq!(problem.code, ErrorCode::GuardFailed),
        other => panic!("written without the lock: {other:?}"),
    }
    Ok(())
}

async fn semaphore(client: &Client) -> Outcome {
    let session = client.session().await?;
    let slot = session.lock("encoder").slots(2).acquire().await?;
    let other = client.session().await?;
    let beside = other.lock("encoder").slots(2).acquire().await?;
    assert!(beside.token()? > slot.token()?);
    Ok(())
}

async fn election(client: &Client) -> Outcome {
    let session = client.session().ttl(Duration::from_secs(5)).await?;
    let address = Content::json("10.0.0.9:8080")?;
    let leadership = session.elect("scheduler").value(address).campaign().await?;
    let leader = client.election("scheduler").leader().await?.expect("we do");
    assert_eq!((leader.term, leader.session.as_str()), (leadership.term()?, session.id()));
    tokio::select! {
        loss = leadership.lost() => println!("somebody else may lead: {loss}"),
        written = client.put("schedule/last", Content::json_text("1")).guarded_by(&leadership) => drop(written?),
    }
    let mut observation = client.election("scheduler").observe().await?;
    let seen = observation.next().await?.leader().expect("we still lead");
    assert_eq!(seen.owner, "");
    leadership.resign().await?;
    assert!(observation.next().await?.leader().is_none());
    Ok(())
}

async fn meetings(client: &Client) -> Outcome {
    let (one, other) = (client.session().await?, client.session().await?);
    let (first, second) = (one.barrier("both", 2), other.barrier("both", 2));
    // Each waits for the other.
    futures::future::try_join(first.enter(), second.enter()).await?;
    futures::future::try_join(first.leave(), second.leave()).await?;

    let latch = client.latch("copied");
    latch.create(1).await?;
    latch.count_down(1).await?;
    assert!(latch.wait(Duration::from_secs(5)).await?.open);
    latch.remove().await?;
    Ok(())
}

async fn tasks(client: &Client) -> Outcome {
    let parcels = client.tasks("parcels");
    for n in 1..=3 {
        parcels
            .schedule(Content::json(&json!({"n": n}))?)
            .id(format!("p{n}"))
            .delay(Duration::from_millis(n * 10))
            .await?;
    }
    let (done, mut all) = tokio::sync::mpsc::unbounded_channel();
    let stop = async move {
        for _ in 0..3 {
            all.recv().await;
        }
    };
    let report = parcels
        .worker()
        .concurrency(2)
        .lease(Duration::from_secs(5))
        .run_until(stop, move |run| {
            let done = done.clone();
            async move {
                let parcel: Value = run.task().json()?;
                println!("sending parcel {}", parcel["n"]);
                done.send(parcel)?;
                Ok(())
            }
        })
        .await?;
    assert_eq!(report.completed, 3);
    Ok(())
}

async fn watch(client: &Client) -> Outcome {
    client.put_json("settings/limit", &json!(10)).await?;
    let mut watch = client.watch("settings/").initial().start().await?;
    assert!(matches!(watch.next().await?, Watched::Event(event) if event.initial && event.key == "settings/limit"));
    assert!(matches!(watch.next().await?, Watched::Synced(_)));
    client.put_json("settings/limit", &json!(20)).await?;
    let changed = watch.next().await?.event().and_then(|event| event.entry).expect("it was written");
    assert_eq!(changed.json::<u64>()?, 20);
    Ok(())
}

async fn mirror(client: &Client) -> Outcome {
    client.put_json("hosts/web-1", &json!({"zone": "a"})).await?;
    let hosts = client.mirror("hosts/").index_by("zone").start().await?;
    assert_eq!(hosts.find_by("zone", &json!("a"))[0].key, "hosts/web-1");
    client.put_json("hosts/web-2", &json!({"zone": "b"})).await?;
    // After this it shows all that was written before.
    hosts.sync().await?;
    assert!(hosts.get("hosts/web-2").is_some());
    Ok(())
}
