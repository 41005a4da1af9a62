//! Entries and transactions.

use etcd_client::{
    CompactionOptions, Compare, CompareOp, DeleteOptions, Error, GetOptions, KvClientPrefix, PutOptions, SortOrder,
    SortTarget, Txn, TxnOp, TxnOpResponse,
};

use crate::{Context, Outcome, cases, refused};

cases! {
    put_and_get, put_options, ranges, sorted_by_everything, revisions, pages, deletions, transactions, comparisons, nested_transactions,
    what_a_transaction_refuses, namespace, range_as_a_stream, compaction,
}

fn prefix() -> Option<GetOptions> {
    Some(GetOptions::new().with_prefix())
}

/// The last parts of the keys in a range.
async fn names(of: &mut Context, options: GetOptions) -> Result<String, Error> {
    let answer = of.etcd.get(of.at.clone(), Some(options.with_prefix())).await?;
    Ok(answer.kvs().iter().map(|entry| &entry.key_str().expect("text")[of.at.len()..]).collect())
}

async fn put_and_get(mut of: Context) -> Outcome {
    let first = of.put("a", "one").await?;
    let second = of.put("a", "two").await?;
    let answer = of.etcd.get(of.key("a"), None).await?;
    let entry = &answer.kvs()[0];
    assert_eq!((entry.key_str()?, entry.value_str()?), (of.key("a").as_str(), "two"));
    assert_eq!((entry.create_revision(), entry.mod_revision(), entry.version(), entry.lease()), (first, second, 2, 0));
    assert_eq!((answer.count(), answer.more()), (1, false));
    let header = answer.header().expect("a header");
    assert!(
        header.cluster_id() != 0 && header.member_id() != 0 && header.raft_term() > 0 && header.revision() >= second
    );
    assert_eq!(of.value("nothing").await?, None);
    let bytes: Vec<u8> = (0..=255).collect();
    let key = [of.at.as_bytes(), &bytes].concat();
    of.etcd.put(key.clone(), bytes.clone(), None).await?;
    assert_eq!(of.etcd.get(key, None).await?.kvs()[0].value(), bytes);
    Ok(())
}

async fn put_options(mut of: Context) -> Outcome {
    let key = of.key("a");
    let before = of.etcd.put(key.clone(), "one", Some(PutOptions::new().with_prev_key())).await?;
    assert!(before.prev_key().is_none());
    let lease = of.etcd.lease_grant(60, None).await?.id();
    let before = of.etcd.put(key.clone(), "two", Some(PutOptions::new().with_prev_key().with_lease(lease))).await?;
    assert_eq!(before.prev_key().expect("an entry before").value_str()?, "one");
    of.etcd.put(key.clone(), "three", Some(PutOptions::new().with_ignore_lease())).await?;
    of.etcd.put(key.clone(), "", Some(PutOptions::new().with_ignore_value().with_ignore_lease())).await?;
    let answer = of.etcd.get(key, None).await?;
    let entry = &answer.kvs()[0];
    assert_eq!((entry.value_str()?, entry.lease(), entry.version()), ("three", lease, 4));
    let nothing = of.key("nothing");
    assert_eq!(
        refused(of.etcd.put(nothing.clone(), "", Some(PutOptions::new().with_ignore_value())).await),
        "InvalidArgument: etcdserver: key not found"
    );
    assert_eq!(
        refused(of.etcd.put(nothing.clone(), "x", Some(PutOptions::new().with_ignore_value())).await),
        "InvalidArgument: etcdserver: value is provided"
    );
    assert_eq!(
        refused(of.etcd.put(nothing, "x", Some(PutOptions::new().with_lease(12345))).await),
        "NotFound: etcdserver: requested lease not found"
    );
    assert_eq!(refused(of.etcd.put("", "x", None).await), "InvalidArgument: etcdserver: key is not provided");
    Ok(())
}

async fn ranges(mut of: Context) -> Outcome {
    for name in ["a", "b", "c"] {
        of.put(name, name).await?;
    }
    assert_eq!(names(&mut of, GetOptions::new()).await?, "abc");
    let half_open = of.etcd.get(of.key("a"), Some(GetOptions::new().with_range(of.key("c")))).await?;
    assert_eq!(half_open.count(), 2);
    let counted = of.etcd.get(of.at.clone(), Some(GetOptions::new().with_prefix().with_count_only())).await?;
    assert_eq!((counted.count(), counted.kvs().len()), (3, 0));
    let keys =
        of.etcd.get(of.at.clone(), Some(GetOptions::new().with_prefix().with_keys_only().with_serializable())).await?;
    assert!(keys.kvs().iter().all(|entry| entry.value().is_empty() && entry.version() == 1));
    assert!(of.etcd.get("", Some(GetOptions::new().with_all_keys())).await?.count() >= 3);
    let from = of.etcd.get(of.key("b"), Some(GetOptions::new().with_from_key())).await?;
    assert_eq!(from.kvs()[0].key_str()?, of.key("b"));
    Ok(())
}

async fn sorted_by_everything(mut of: Context) -> Outcome {
    for (name, value) in [("b", "x"), ("c", "z"), ("a", "y"), ("b", "x"), ("b", "x"), ("c", "z")] {
        of.put(name, value).await?;
    }
    for (target, ascending) in [
        (SortTarget::Key, "abc"),
        (SortTarget::Version, "acb"),
        (SortTarget::Create, "bca"),
        (SortTarget::Mod, "abc"),
        (SortTarget::Value, "bac"),
    ] {
        assert_eq!(
            names(&mut of, GetOptions::new().with_sort(target, SortOrder::Ascend)).await?,
            ascending,
            "{target:?}"
        );
        let descending: String = ascending.chars().rev().collect();
        assert_eq!(
            names(&mut of, GetOptions::new().with_sort(target, SortOrder::Descend)).await?,
            descending,
            "{target:?}"
        );
    }
    Ok(())
}

async fn revisions(mut of: Context) -> Outcome {
    let first = of.put("a", "one").await?;
    let second = of.put("b", "two").await?;
    let third = of.put("a", "three").await?;
    let then = of.etcd.get(of.key("a"), Some(GetOptions::new().with_revision(second))).await?;
    assert_eq!(then.kvs()[0].value_str()?, "one");
    assert_eq!(names(&mut of, GetOptions::new().with_min_mod_revision(third)).await?, "a");
    assert_eq!(names(&mut of, GetOptions::new().with_max_mod_revision(second)).await?, "b");
    assert_eq!(names(&mut of, GetOptions::new().with_min_create_revision(second)).await?, "b");
    assert_eq!(names(&mut of, GetOptions::new().with_max_create_revision(first)).await?, "a");
    assert_eq!(
        refused(of.etcd.get(of.key("a"), Some(GetOptions::new().with_revision(third + 1_000_000))).await),
        "OutOfRange: etcdserver: mvcc: required revision is a future revision"
    );
    Ok(())
}

async fn pages(mut of: Context) -> Outcome {
    for number in 0..25 {
        of.put(&format!("{number:02}"), "x").await?;
    }
    let (mut from, mut seen, mut revision) = (of.at.clone(), 0, 0);
    let end = format!("{}0", &of.at[..of.at.len() - 1]);
    loop {
        let page = of
            .etcd
            .get(from, Some(GetOptions::new().with_range(end.clone()).with_limit(10).with_revision(revision)))
            .await?;
        assert_eq!(page.count(), 25 - seen);
        seen += i64::try_from(page.kvs().len()).expect("few");
        revision = page.header().expect("a header").revision();
        from = format!("{}\0", page.kvs().last().expect("some").key_str()?);
        if !page.more() {
            break;
        }
    }
    assert_eq!(seen, 25);
    Ok(())
}

async fn deletions(mut of: Context) -> Outcome {
    for name in ["a", "b", "c", "d"] {
        of.put(name, name).await?;
    }
    assert_eq!(of.etcd.delete(of.key("a"), None).await?.deleted(), 1);
    assert_eq!(of.etcd.delete(of.key("a"), None).await?.deleted(), 0);
    let answer =
        of.etcd.delete(of.key("b"), Some(DeleteOptions::new().with_range(of.key("d")).with_prev_key())).await?;
    assert_eq!(answer.deleted(), 2);
    assert_eq!(answer.prev_kvs().iter().map(|entry| entry.value_str().expect("text")).collect::<String>(), "bc");
    assert_eq!(of.etcd.delete(of.at.clone(), Some(DeleteOptions::new().with_prefix())).await?.deleted(), 1);
    assert_eq!(of.etcd.get(of.at.clone(), prefix()).await?.count(), 0);
    Ok(())
}

async fn transactions(mut of: Context) -> Outcome {
    of.put("a", "one").await?;
    let (a, b) = (of.key("a"), of.key("b"));
    let txn = Txn::new()
        .when([Compare::value(a.clone(), CompareOp::Equal, "one"), Compare::version(b.clone(), CompareOp::Equal, 0)])
        .and_then([
            TxnOp::put(b.clone(), "two", None),
            TxnOp::get(b.clone(), None),
            TxnOp::delete(a.clone(), None),
            TxnOp::get(a.clone(), None),
        ])
        .or_else([TxnOp::put(a.clone(), "wrong", None)]);
    let answer = of.etcd.txn(txn.clone()).await?;
    assert!(answer.succeeded());
    let revision = answer.header().expect("a header").revision();
    let [TxnOpResponse::Put(put), TxnOpResponse::Get(there), TxnOpResponse::Delete(deleted), TxnOpResponse::Get(gone)] =
        &answer.op_responses()[..]
    else {
        panic!("other answers: {answer:?}");
    };
    assert_eq!(put.header().expect("nested answers have a header").revision(), revision);
    assert_eq!((there.kvs()[0].mod_revision(), deleted.deleted(), gone.kvs().len()), (revision, 1, 0));
    let again = of.etcd.txn(txn).await?;
    assert!(!again.succeeded());
    assert_eq!(of.value("a").await?.as_deref(), Some("wrong"));
    Ok(())
}

async fn comparisons(mut of: Context) -> Outcome {
    let lease = of.etcd.lease_grant(60, None).await?.id();
    let key = of.key("a");
    of.put("a", "m").await?;
    of.etcd.put(key.clone(), "m", Some(PutOptions::new().with_lease(lease))).await?;
    let answer = of.etcd.get(key.clone(), None).await?;
    let (create, modified) = (answer.kvs()[0].create_revision(), answer.kvs()[0].mod_revision());
    let (equal, not, less, greater) = (CompareOp::Equal, CompareOp::NotEqual, CompareOp::Less, CompareOp::Greater);
    let nothing = of.key("nothing");
    for (number, (compare, holds)) in [
        (Compare::version(key.clone(), equal, 2), true),
        (Compare::version(key.clone(), less, 2), false),
        (Compare::create_revision(key.clone(), equal, create), true),
        (Compare::create_revision(key.clone(), greater, create - 1), true),
        (Compare::mod_revision(key.clone(), not, create), true),
        (Compare::mod_revision(key.clone(), greater, modified), false),
        (Compare::value(key.clone(), less, "n"), true),
        (Compare::value(key.clone(), not, "m"), false),
        (Compare::lease(key.clone(), equal, lease), true),
        (Compare::lease(key.clone(), equal, 0), false),
        (Compare::version(nothing.clone(), equal, 0), true),
        (Compare::lease(nothing.clone(), equal, 0), true),
        (Compare::value(nothing.clone(), not, "x"), false),
        (Compare::version(of.at.clone(), greater, 1).with_prefix(), true),
        (Compare::create_revision(nothing, equal, 0).with_prefix(), true),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(of.etcd.txn(Txn::new().when([compare])).await?.succeeded(), holds, "comparison {number}");
    }
    Ok(())
}

async fn nested_transactions(mut of: Context) -> Outcome {
    let (a, b) = (of.key("a"), of.key("b"));
    let inner = Txn::new()
        .when([Compare::version(a.clone(), CompareOp::Greater, 0)])
        .and_then([TxnOp::put(b.clone(), "yes", None)])
        .or_else([TxnOp::put(b.clone(), "no", None)]);
    let outer = Txn::new()
        .when([Compare::version(a.clone(), CompareOp::Equal, 0)])
        .and_then([TxnOp::put(a, "one", None), TxnOp::txn(inner)]);
    let answer = of.etcd.txn(outer).await?;
    let TxnOpResponse::Txn(nested) = &answer.op_responses()[1] else { panic!("another answer: {answer:?}") };
    assert!(!nested.succeeded(), "comparisons see the state before the transaction, nested ones, too");
    assert_eq!(of.value("b").await?.as_deref(), Some("no"));
    Ok(())
}

async fn what_a_transaction_refuses(mut of: Context) -> Outcome {
    let put = || TxnOp::put(of.key("a"), "x", None);
    let duplicate = "InvalidArgument: etcdserver: duplicate key given in txn request";
    let twice = Txn::new().and_then([put(), put()]);
    let deleted = Txn::new().and_then([put(), TxnOp::delete(of.at.clone(), Some(DeleteOptions::new().with_prefix()))]);
    let nested = Txn::new().and_then([put(), TxnOp::txn(Txn::new().or_else([put()]))]);
    for txn in [twice, deleted, nested] {
        assert_eq!(refused(of.etcd.txn(txn).await), duplicate);
    }
    assert_eq!(of.value("a").await?, None);
    Ok(())
}

async fn namespace(mut of: Context) -> Outcome {
    let mut inner = KvClientPrefix::new(of.etcd.kv_client(), of.at.clone().into());
    inner.put("a", "one", None).await?;
    assert_eq!(of.value("a").await?.as_deref(), Some("one"));
    let below = inner.get("a", prefix()).await?;
    assert_eq!((below.count(), below.kvs()[0].key_str()?), (1, "a"));
    Ok(())
}

/// Not in etcd before 3.7, which says so in a way that clients look for.
async fn range_as_a_stream(mut of: Context) -> Outcome {
    for number in 0..50 {
        of.put(&format!("{number:02}"), &"x".repeat(1000)).await?;
    }
    let mut stream = match of.etcd.kv_client().get_stream(of.at.clone(), prefix()).await {
        Ok(stream) => stream,
        Err(error) => {
            let unknown = "Unimplemented: unknown method RangeStream for service etcdserverpb.KV";
            assert_eq!(refused::<()>(Err(error)), unknown);
            return Ok(());
        }
    };
    let (mut seen, mut count) = (0, 0);
    while let Some(piece) = stream.message().await? {
        seen += piece.kvs().len();
        count = piece.count();
    }
    assert_eq!((seen, count), (50, 50));
    Ok(())
}

async fn compaction(mut of: Context) -> Outcome {
    let first = of.put("a", "one").await?;
    let last = of.put("a", "two").await?;
    of.etcd.compact(last, Some(CompactionOptions::new().with_physical())).await?;
    let compacted = "OutOfRange: etcdserver: mvcc: required revision has been compacted";
    assert_eq!(refused(of.etcd.compact(first, None).await), compacted);
    assert_eq!(refused(of.etcd.get(of.key("a"), Some(GetOptions::new().with_revision(first))).await), compacted);
    assert_eq!(of.value("a").await?.as_deref(), Some("two"));
    Ok(())
}
