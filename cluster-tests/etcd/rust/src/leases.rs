//! Leases, and the services for locks and elections.

use std::collections::VecDeque;
use std::time::Duration;

use etcd_client::{
    Client, Error, GetOptions, LeaseGrantOptions, LeaseTimeToLiveOptions, LockOptions, ObserveStream, ProclaimOptions,
    PutOptions, ResignOptions,
};

use crate::{Context, Outcome, cases, eventually, refused};

cases! {
    lease, lease_that_ends, lease_with_an_id_of_its_own, lease_that_is_not_there, lock, lock_in_turn, lock_ends_with_its_lease, election,
    election_is_observed, what_an_election_refuses,
}

async fn lease(mut of: Context) -> Outcome {
    let granted = of.etcd.lease_grant(60, None).await?;
    let id = granted.id();
    assert!(id > 0 && granted.ttl() == 60 && granted.error().is_empty());
    of.etcd.put(of.key("a"), "one", Some(PutOptions::new().with_lease(id))).await?;
    let left = of.etcd.lease_time_to_live(id, Some(LeaseTimeToLiveOptions::new().with_keys())).await?;
    assert_eq!((left.id(), left.granted_ttl(), left.keys()), (id, 60, &[of.key("a").into_bytes()][..]));
    assert!(left.ttl() > 50 && left.ttl() <= 60);
    assert!(of.etcd.leases().await?.leases().iter().any(|each| each.id() == id));
    let (mut keeper, mut answers) = of.etcd.lease_keep_alive(id).await?;
    for _ in 0..3 {
        keeper.keep_alive().await?;
        let answer = answers.message().await?.expect("an answer for each request");
        assert_eq!((answer.id(), answer.ttl()), (id, 60));
    }
    of.etcd.lease_revoke(id).await?;
    assert_eq!(of.value("a").await?, None);
    keeper.keep_alive().await?;
    assert_eq!(answers.message().await?.expect("the stream stays").ttl(), 0);
    Ok(())
}

async fn lease_that_ends(mut of: Context) -> Outcome {
    let id = of.etcd.lease_grant(2, None).await?.id();
    of.etcd.put(of.key("a"), "one", Some(PutOptions::new().with_lease(id))).await?;
    let (mut keeper, mut answers) = of.etcd.lease_keep_alive(id).await?;
    for _ in 0..4 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        keeper.keep_alive().await?;
        assert_eq!(answers.message().await?.expect("an answer").ttl(), 2);
    }
    assert_eq!(of.value("a").await?.as_deref(), Some("one"), "it ended though it was renewed");
    gone(&of, "a").await?;
    assert_eq!(of.etcd.lease_time_to_live(id, None).await?.ttl(), -1);
    Ok(())
}

/// Waits until an entry is gone.
async fn gone(of: &Context, name: &str) -> Outcome {
    eventually("the entry is gone", || {
        let (mut etcd, key) = (of.etcd.clone(), of.key(name));
        async move { Ok(etcd.get(key, None).await?.kvs().is_empty()) }
    })
    .await
}

async fn lease_with_an_id_of_its_own(mut of: Context) -> Outcome {
    let id = 0x7000_0000_0000_0000 + i64::from(std::process::id());
    assert_eq!(of.etcd.lease_grant(60, Some(LeaseGrantOptions::new().with_id(id))).await?.id(), id);
    assert_eq!(
        refused(of.etcd.lease_grant(60, Some(LeaseGrantOptions::new().with_id(id))).await),
        "FailedPrecondition: etcdserver: lease already exists"
    );
    of.etcd.put(of.key("a"), "one", Some(PutOptions::new().with_lease(id))).await?;
    of.etcd.lease_revoke(id).await?;
    assert_eq!(of.value("a").await?, None);
    Ok(())
}

async fn lease_that_is_not_there(mut of: Context) -> Outcome {
    assert_eq!(refused(of.etcd.lease_revoke(12345).await), "NotFound: etcdserver: requested lease not found");
    assert_eq!(of.etcd.lease_time_to_live(12345, None).await?.ttl(), -1);
    assert!(of.etcd.lease_keep_alive(12345).await.is_err());
    Ok(())
}

async fn lock(mut of: Context) -> Outcome {
    let lease = of.etcd.lease_grant(60, None).await?.id();
    let held = of.etcd.lock(of.key("l"), Some(LockOptions::new().with_lease(lease))).await?;
    assert!(held.key().starts_with(of.key("l").as_bytes()), "the key is below the name");
    let entry = of.etcd.get(held.key(), None).await?;
    assert_eq!(entry.kvs()[0].lease(), lease);
    // The same lease holds it already.
    let again = of.etcd.lock(of.key("l"), Some(LockOptions::new().with_lease(lease))).await?;
    assert_eq!(again.key(), held.key());
    of.etcd.unlock(held.key()).await?;
    assert_eq!(of.etcd.get(held.key(), None).await?.count(), 0);
    // Without a lease the server makes one.
    let alone = of.etcd.lock(of.key("l"), None).await?;
    of.etcd.unlock(alone.key()).await?;
    assert_eq!(
        refused(of.etcd.lock(of.key("l"), Some(LockOptions::new().with_lease(12345))).await),
        "Unknown: etcdserver: requested lease not found"
    );
    Ok(())
}

/// Takes the lock in a task of its own.
fn waiting(of: &Context, lease: i64) -> tokio::task::JoinHandle<Result<Vec<u8>, Error>> {
    let (mut etcd, name) = (of.etcd.clone(), of.key("l"));
    tokio::spawn(async move { Ok(etcd.lock(name, Some(LockOptions::new().with_lease(lease))).await?.key().to_vec()) })
}

async fn lock_in_turn(mut of: Context) -> Outcome {
    let mut queue = VecDeque::new();
    for place in 0..3 {
        let lease = of.etcd.lease_grant(60, None).await?.id();
        queue.push_back(waiting(&of, lease));
        // Places in the queue are in the order of creation, so each waits until it stands there.
        let (etcd, name) = (of.etcd.clone(), of.key("l"));
        eventually("it stands in the queue", || {
            let (mut etcd, name) = (etcd.clone(), name.clone());
            async move { Ok(etcd.get(name, Some(GetOptions::new().with_prefix())).await?.count() == place + 1) }
        })
        .await?;
    }
    while let Some(first) = queue.pop_front() {
        let key = first.await.expect("no panic")?;
        assert!(queue.iter().all(|each| !each.is_finished()), "two hold the lock");
        of.etcd.unlock(key).await?;
    }
    Ok(())
}

async fn lock_ends_with_its_lease(mut of: Context) -> Outcome {
    let short = of.etcd.lease_grant(2, None).await?.id();
    of.etcd.lock(of.key("l"), Some(LockOptions::new().with_lease(short))).await?;
    let long = of.etcd.lease_grant(60, None).await?.id();
    let key = tokio::time::timeout(Duration::from_secs(20), waiting(&of, long))
        .await
        .expect("within 20 s")
        .expect("no panic")?;
    of.etcd.unlock(key).await?;
    Ok(())
}

async fn election(mut of: Context) -> Outcome {
    let name = of.key("e");
    let first = of.etcd.lease_grant(60, None).await?.id();
    let elected = of.etcd.campaign(name.clone(), "first", first).await?;
    let leader = elected.leader().expect("a leader's key").clone();
    assert_eq!((leader.name_str()?, leader.lease()), (name.as_str(), first));
    assert!(leader.rev() > 0 && leader.key_str()?.starts_with(&name));
    assert_eq!(of.etcd.leader(name.clone()).await?.kv().expect("somebody leads").value_str()?, "first");
    let second = of.etcd.lease_grant(60, None).await?.id();
    let campaign = {
        let (mut etcd, name) = (of.etcd.clone(), name.clone());
        tokio::spawn(async move { etcd.campaign(name, "second", second).await })
    };
    of.etcd.proclaim("first again", Some(ProclaimOptions::new().with_leader(leader.clone()))).await?;
    assert_eq!(of.etcd.leader(name.clone()).await?.kv().expect("somebody leads").value_str()?, "first again");
    assert!(!campaign.is_finished());
    of.etcd.resign(Some(ResignOptions::new().with_leader(leader))).await?;
    let elected = campaign.await.expect("no panic")?;
    assert_eq!(of.etcd.leader(name).await?.kv().expect("somebody leads").value_str()?, "second");
    of.etcd.resign(Some(ResignOptions::new().with_leader(elected.leader().expect("a leader's key").clone()))).await?;
    Ok(())
}

/// What the next leader says.
async fn observed(observer: &mut ObserveStream) -> Result<String, Error> {
    let answer = tokio::time::timeout(Duration::from_secs(10), observer.message()).await.expect("within 10 s")?;
    Ok(answer.expect("the stream goes on").kv().expect("an entry").value_str()?.to_owned())
}

async fn election_is_observed(mut of: Context) -> Outcome {
    let name = of.key("e");
    // An answer comes no sooner than somebody leads.
    let observing = {
        let (mut etcd, name) = (of.etcd.clone(), name.clone());
        tokio::spawn(async move { etcd.observe(name).await })
    };
    let lease = of.etcd.lease_grant(60, None).await?.id();
    let first = of.etcd.campaign(name.clone(), "first", lease).await?;
    let mut observer =
        tokio::time::timeout(Duration::from_secs(10), observing).await.expect("within 10 s").expect("no panic")?;
    let mut seen = vec![observed(&mut observer).await?];
    of.etcd.resign(Some(ResignOptions::new().with_leader(first.leader().expect("a leader's key").clone()))).await?;
    for word in ["second", "third"] {
        let lease = of.etcd.lease_grant(60, None).await?.id();
        let elected = of.etcd.campaign(name.clone(), word, lease).await?;
        seen.push(observed(&mut observer).await?);
        of.etcd
            .resign(Some(ResignOptions::new().with_leader(elected.leader().expect("a leader's key").clone())))
            .await?;
    }
    assert_eq!(seen, ["first", "second", "third"]);
    Ok(())
}

async fn what_an_election_refuses(mut of: Context) -> Outcome {
    let name = of.key("e");
    assert_eq!(refused(of.etcd.leader(name.clone()).await), "Unknown: election: no leader");
    let lease = of.etcd.lease_grant(60, None).await?.id();
    let elected = of.etcd.campaign(name.clone(), "one", lease).await?;
    let leader = elected.leader().expect("a leader's key").clone();
    of.etcd.lease_revoke(lease).await?;
    assert_eq!(
        refused(of.etcd.proclaim("two", Some(ProclaimOptions::new().with_leader(leader))).await),
        "Unknown: election: not leader"
    );
    let mut etcd = Client::connect(&of.servers, None).await?;
    assert_eq!(refused(etcd.campaign(name, "one", 12345).await), "Unknown: etcdserver: requested lease not found");
    Ok(())
}
