// What jetcd offers, as cases that say what they saw: one line each, "ok NAME" or "failed NAME: WHY". Where the
// environment has passwords, only those that log in.

import io.etcd.jetcd.ByteSequence;
import io.etcd.jetcd.Client;
import io.etcd.jetcd.Election;
import io.etcd.jetcd.KeyValue;
import io.etcd.jetcd.Watch;
import io.etcd.jetcd.auth.Permission;
import io.etcd.jetcd.cluster.Member;
import io.etcd.jetcd.election.LeaderResponse;
import io.etcd.jetcd.kv.TxnResponse;
import io.etcd.jetcd.lease.LeaseKeepAliveResponse;
import io.etcd.jetcd.op.Cmp;
import io.etcd.jetcd.op.CmpTarget;
import io.etcd.jetcd.op.Op;
import io.etcd.jetcd.options.CompactOption;
import io.etcd.jetcd.options.DeleteOption;
import io.etcd.jetcd.options.GetOption;
import io.etcd.jetcd.options.LeaseOption;
import io.etcd.jetcd.options.OptionsUtil;
import io.etcd.jetcd.options.PutOption;
import io.etcd.jetcd.options.WatchOption;
import io.etcd.jetcd.watch.WatchEvent;
import io.etcd.jetcd.watch.WatchResponse;
import io.grpc.stub.StreamObserver;
import java.io.ByteArrayOutputStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;

public final class Cases {
    /** No case takes longer, unless it hangs. */
    private static final Duration PATIENCE = Duration.ofSeconds(60);

    private static String[] servers;
    private static final Map<String, Case> CASES = new LinkedHashMap<>();
    private static final Map<String, Case> LOGIN_CASES = new LinkedHashMap<>();

    /** What is called, and what it has to answer. */
    private interface Case {
        void run(Client etcd, String at) throws Exception;
    }

    private static ByteSequence bytes(String text) {
        return ByteSequence.from(text, StandardCharsets.UTF_8);
    }

    private static String text(ByteSequence bytes) {
        return bytes.toString(StandardCharsets.UTF_8);
    }

    private static void expect(boolean holds, Object seen) {
        if (!holds) {
            throw new AssertionError(String.valueOf(seen));
        }
    }

    private static void same(Object seen, Object wanted) {
        expect(wanted.equals(seen), "saw " + seen + ", not " + wanted);
    }

    private static <T> T got(CompletableFuture<T> answer) throws Exception {
        return answer.get(20, TimeUnit.SECONDS);
    }

    /** What a call is refused with; the client makes exceptions of some of etcd's texts. */
    private static String refused(CompletableFuture<?> answer) throws Exception {
        try {
            got(answer);
        } catch (ExecutionException refusal) {
            return refusal.getCause().toString();
        }
        throw new AssertionError("it was not refused");
    }

    private static void refusedWith(CompletableFuture<?> answer, String wanted) throws Exception {
        String text = refused(answer);
        expect(text.contains(wanted), text);
    }

    private static void eventually(String what, Callable<Boolean> condition) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
        while (!condition.call()) {
            expect(System.nanoTime() < deadline, what + ": not within 20 s");
            Thread.sleep(100);
        }
    }

    private static long put(Client etcd, String key, String value) throws Exception {
        return got(etcd.getKVClient().put(bytes(key), bytes(value))).getHeader().getRevision();
    }

    private static String value(Client etcd, String key) throws Exception {
        List<KeyValue> entries = got(etcd.getKVClient().get(bytes(key))).getKvs();
        return entries.isEmpty() ? null : text(entries.get(0).getValue());
    }

    /** The last parts of the keys below a prefix. */
    private static String names(Client etcd, String at, GetOption.Builder options) throws Exception {
        return got(etcd.getKVClient().get(bytes(at), options.isPrefix(true).build())).getKvs().stream()
            .map(entry -> text(entry.getKey()).substring(at.length())).collect(Collectors.joining());
    }

    /** What a watch says, in order. */
    private static final class Recorder implements Watch.Listener {
        private final BlockingQueue<WatchResponse> answers = new LinkedBlockingQueue<>();
        private final BlockingQueue<Throwable> errors = new LinkedBlockingQueue<>();

        @Override
        public void onNext(WatchResponse answer) {
            answers.add(answer);
        }

        @Override
        public void onError(Throwable error) {
            errors.add(error);
        }

        @Override
        public void onCompleted() {}

        private List<WatchEvent> events(int count) throws InterruptedException {
            List<WatchEvent> seen = new ArrayList<>();
            while (seen.size() < count) {
                WatchResponse answer = answers.poll(10, TimeUnit.SECONDS);
                expect(answer != null, "only " + seen.size() + " of " + count + " events; errors: " + errors);
                seen.addAll(answer.getEvents());
            }
            return seen;
        }

        private String values(int count) throws InterruptedException {
            return events(count).stream().map(event -> text(event.getKeyValue().getValue())).collect(Collectors.joining(" "));
        }
    }

    static {
        // --- entries

        CASES.put("put_and_get", (etcd, at) -> {
            long first = put(etcd, at + "a", "one");
            long second = put(etcd, at + "a", "two");
            var answer = got(etcd.getKVClient().get(bytes(at + "a")));
            KeyValue entry = answer.getKvs().get(0);
            same(List.of(text(entry.getValue()), entry.getCreateRevision(), entry.getModRevision(), entry.getVersion(), entry.getLease()),
                List.of("two", first, second, 2L, 0L));
            var header = answer.getHeader();
            expect(header.getClusterId() != 0 && header.getMemberId() != 0 && header.getRaftTerm() > 0 && header.getRevision() >= second,
                header);
            var before = got(etcd.getKVClient().put(bytes(at + "a"), bytes("three"), PutOption.builder().withPrevKV().build()));
            same(text(before.getPrevKv().getValue()), "two");
            same(got(etcd.getKVClient().get(bytes(at + "nothing"))).getCount(), 0L);
        });

        CASES.put("ranges", (etcd, at) -> {
            for (String name : List.of("a", "b", "c")) {
                put(etcd, at + name, name);
            }
            same(names(etcd, at, GetOption.builder()), "abc");
            same(names(etcd, at, GetOption.builder().withLimit(2)), "ab");
            var counted = got(etcd.getKVClient().get(bytes(at), GetOption.builder().isPrefix(true).withCountOnly(true).build()));
            same(List.of(counted.getCount(), counted.getKvs().size()), List.of(3L, 0));
            var limited = got(etcd.getKVClient().get(bytes(at),
                GetOption.builder().isPrefix(true).withLimit(1).withKeysOnly(true).build()));
            expect(limited.isMore() && limited.getCount() == 3 && limited.getKvs().get(0).getValue().isEmpty(), limited);
            var halfOpen = GetOption.builder().withRange(bytes(at + "c")).withSerializable(true).build();
            eventually("a serializable read sees both", () -> got(etcd.getKVClient().get(bytes(at + "a"), halfOpen)).getCount() == 2);
        });

        CASES.put("sorted_by_everything", (etcd, at) -> {
            for (String each : List.of("bx", "cz", "ay", "bx", "bx", "cz")) {
                put(etcd, at + each.charAt(0), each.substring(1));
            }
            var targets = Map.of(GetOption.SortTarget.KEY, "abc", GetOption.SortTarget.VERSION, "acb", GetOption.SortTarget.CREATE, "bca",
                GetOption.SortTarget.MOD, "abc", GetOption.SortTarget.VALUE, "bac");
            for (var each : targets.entrySet()) {
                String up = names(etcd, at, GetOption.builder().withSortField(each.getKey()).withSortOrder(GetOption.SortOrder.ASCEND));
                same(each.getKey() + up, each.getKey() + each.getValue());
                String down = names(etcd, at, GetOption.builder().withSortField(each.getKey()).withSortOrder(GetOption.SortOrder.DESCEND));
                same(each.getKey() + down, each.getKey() + new StringBuilder(each.getValue()).reverse().toString());
            }
        });

        CASES.put("revisions", (etcd, at) -> {
            long first = put(etcd, at + "a", "one");
            long second = put(etcd, at + "b", "two");
            long third = put(etcd, at + "a", "three");
            var then = got(etcd.getKVClient().get(bytes(at + "a"), GetOption.builder().withRevision(second).build()));
            same(text(then.getKvs().get(0).getValue()), "one");
            same(names(etcd, at, GetOption.builder().withMinModRevision(third)), "a");
            same(names(etcd, at, GetOption.builder().withMaxModRevision(second)), "b");
            same(names(etcd, at, GetOption.builder().withMinCreateRevision(second)), "b");
            same(names(etcd, at, GetOption.builder().withMaxCreateRevision(first)), "a");
            refusedWith(etcd.getKVClient().get(bytes(at + "a"), GetOption.builder().withRevision(third + 1_000_000).build()),
                "required revision is a future revision");
        });

        CASES.put("deletions", (etcd, at) -> {
            for (String name : List.of("a", "b", "c")) {
                put(etcd, at + name, name);
            }
            same(got(etcd.getKVClient().delete(bytes(at + "a"))).getDeleted(), 1L);
            same(got(etcd.getKVClient().delete(bytes(at + "a"))).getDeleted(), 0L);
            var gone = got(etcd.getKVClient().delete(bytes(at), DeleteOption.builder().isPrefix(true).withPrevKV(true).build()));
            same(gone.getPrevKvs().stream().map(entry -> text(entry.getValue())).toList(), List.of("b", "c"));
        });

        CASES.put("namespace", (etcd, at) -> {
            try (Client inner = Client.builder().endpoints(servers).namespace(bytes(at)).build()) {
                put(inner, "a", "one");
                same(value(etcd, at + "a"), "one");
                same(names(inner, "", GetOption.builder()), "a");
                got(inner.getKVClient().txn().If(new Cmp(bytes("a"), Cmp.Op.EQUAL, CmpTarget.value(bytes("one"))))
                    .Then(Op.put(bytes("a"), bytes("two"), PutOption.DEFAULT)).commit());
                same(value(etcd, at + "a"), "two");
            }
        });

        // --- transactions

        CASES.put("transactions", (etcd, at) -> {
            put(etcd, at + "a", "one");
            var a = bytes(at + "a");
            var b = bytes(at + "b");
            TxnResponse yes = got(etcd.getKVClient().txn()
                .If(new Cmp(a, Cmp.Op.EQUAL, CmpTarget.value(bytes("one"))), new Cmp(b, Cmp.Op.EQUAL, CmpTarget.version(0)))
                .Then(Op.put(b, bytes("two"), PutOption.DEFAULT), Op.get(b, GetOption.DEFAULT), Op.delete(a, DeleteOption.DEFAULT))
                .Else(Op.get(a, GetOption.DEFAULT)).commit());
            expect(yes.isSucceeded(), yes);
            long revision = yes.getHeader().getRevision();
            same(yes.getPutResponses().get(0).getHeader().getRevision(), revision);
            same(yes.getGetResponses().get(0).getKvs().get(0).getModRevision(), revision);
            same(yes.getDeleteResponses().get(0).getDeleted(), 1L);
            for (var each : List.of(
                new Cmp(b, Cmp.Op.GREATER, CmpTarget.version(1)),
                new Cmp(b, Cmp.Op.LESS, CmpTarget.createRevision(revision)),
                new Cmp(b, Cmp.Op.NOT_EQUAL, CmpTarget.modRevision(revision)),
                new Cmp(b, Cmp.Op.EQUAL, CmpTarget.value(bytes("three"))))) {
                TxnResponse no = got(etcd.getKVClient().txn().If(each)
                    .Then(Op.delete(b, DeleteOption.DEFAULT)).Else(Op.get(b, GetOption.DEFAULT)).commit());
                expect(!no.isSucceeded() && no.getGetResponses().get(0).getCount() == 1, no);
            }
        });

        CASES.put("nested_transactions", (etcd, at) -> {
            var a = bytes(at + "a");
            var b = bytes(at + "b");
            Op inner = Op.txn(new Cmp[] {new Cmp(a, Cmp.Op.GREATER, CmpTarget.version(0))},
                new Op[] {Op.put(b, bytes("yes"), PutOption.DEFAULT)}, new Op[] {Op.put(b, bytes("no"), PutOption.DEFAULT)});
            TxnResponse answer = got(etcd.getKVClient().txn().If(new Cmp(a, Cmp.Op.EQUAL, CmpTarget.version(0)))
                .Then(Op.put(a, bytes("one"), PutOption.DEFAULT), inner).commit());
            // Comparisons see the state before the transaction, nested ones, too.
            expect(answer.isSucceeded() && !answer.getTxnResponses().get(0).isSucceeded(), answer);
            same(value(etcd, at + "b"), "no");
        });

        CASES.put("a_key_twice", (etcd, at) -> {
            Op put = Op.put(bytes(at + "a"), bytes("x"), PutOption.DEFAULT);
            refusedWith(etcd.getKVClient().txn().Then(put, put).commit(), "duplicate key given in txn request");
        });

        // --- watches

        CASES.put("watch", (etcd, at) -> {
            var seen = new Recorder();
            try (var watcher = etcd.getWatchClient().watch(bytes(at),
                WatchOption.builder().isPrefix(true).withPrevKV(true).withCreateNotify(true).build(), seen)) {
                expect(seen.answers.poll(10, TimeUnit.SECONDS).isCreatedNotify(), "it is not said that the watch began");
                put(etcd, at + "a", "one");
                put(etcd, at + "a", "two");
                got(etcd.getKVClient().delete(bytes(at + "a")));
                List<WatchEvent> events = seen.events(3);
                same(events.stream().map(WatchEvent::getEventType).toList(),
                    List.of(WatchEvent.EventType.PUT, WatchEvent.EventType.PUT, WatchEvent.EventType.DELETE));
                same(events.stream().map(event -> text(event.getPrevKV().getValue())).toList(), List.of("", "one", "two"));
            }
            put(etcd, at + "a", "three");
            Thread.sleep(300);
            same(seen.answers.size(), 0);
        });

        CASES.put("watch_from_a_revision_and_filters", (etcd, at) -> {
            long first = put(etcd, at + "a", "one");
            put(etcd, at + "a", "two");
            got(etcd.getKVClient().delete(bytes(at + "a")));
            var puts = new Recorder();
            var deletes = new Recorder();
            try (var one = etcd.getWatchClient().watch(bytes(at + "a"),
                WatchOption.builder().withRevision(first).withNoDelete(true).build(), puts);
                var other = etcd.getWatchClient().watch(bytes(at + "a"),
                    WatchOption.builder().withRevision(first).withNoPut(true).build(), deletes)) {
                same(puts.values(2), "one two");
                same(deletes.events(1).get(0).getEventType(), WatchEvent.EventType.DELETE);
            }
        });

        CASES.put("many_watches", (etcd, at) -> {
            List<Recorder> seen = new ArrayList<>();
            List<Watch.Watcher> watchers = new ArrayList<>();
            for (int number = 0; number < 50; number++) {
                seen.add(new Recorder());
                var options = WatchOption.builder().withRequireLeader(true).withCreateNotify(true).build();
                watchers.add(etcd.getWatchClient().watch(bytes(at + number), options, seen.get(number)));
            }
            for (Recorder each : seen) {
                expect(each.answers.poll(10, TimeUnit.SECONDS) != null, "a watch did not begin");
            }
            for (int number = 0; number < 50; number++) {
                put(etcd, at + number, "x" + number);
            }
            for (int number = 0; number < 50; number++) {
                same(seen.get(number).values(1), "x" + number);
            }
            watchers.forEach(Watch.Watcher::close);
        });

        CASES.put("watch_progress", (etcd, at) -> {
            var seen = new Recorder();
            try (var watcher = etcd.getWatchClient().watch(bytes(at + "a"),
                WatchOption.builder().withProgressNotify(true).withCreateNotify(true).build(), seen)) {
                expect(seen.answers.poll(10, TimeUnit.SECONDS).isCreatedNotify(), "it is not said that the watch began");
                long revision = put(etcd, at + "b", "not watched");
                eventually("progress up to the write", () -> {
                    watcher.requestProgress();
                    WatchResponse answer = seen.answers.poll(1, TimeUnit.SECONDS);
                    return answer != null && answer.isProgressNotify() && answer.getHeader().getRevision() >= revision;
                });
            }
        });

        CASES.put("watch_from_a_compacted_revision", (etcd, at) -> {
            long first = put(etcd, at + "a", "one");
            long last = put(etcd, at + "a", "two");
            got(etcd.getKVClient().compact(last));
            var seen = new Recorder();
            try (var watcher = etcd.getWatchClient().watch(bytes(at + "a"), WatchOption.builder().withRevision(first).build(), seen)) {
                Throwable error = seen.errors.poll(10, TimeUnit.SECONDS);
                expect(error != null && error.getMessage().contains("required revision has been compacted"), error);
            }
        });

        // --- leases

        CASES.put("lease", (etcd, at) -> {
            var lease = etcd.getLeaseClient();
            long id = got(lease.grant(60)).getID();
            got(etcd.getKVClient().put(bytes(at + "a"), bytes("one"), PutOption.builder().withLeaseId(id).build()));
            var left = got(lease.timeToLive(id, LeaseOption.builder().withAttachedKeys().build()));
            same(left.getKeys().stream().map(Cases::text).toList(), List.of(at + "a"));
            expect(left.getGrantedTTL() == 60 && left.getTTL() > 50 && left.getTTL() <= 60, left);
            same(got(lease.keepAliveOnce(id)).getTTL(), 60L);
            got(lease.revoke(id));
            same(got(etcd.getKVClient().get(bytes(at + "a"))).getCount(), 0L);
            refusedWith(lease.revoke(id), "requested lease not found");
            same(got(lease.timeToLive(id, LeaseOption.DEFAULT)).getTTL(), -1L);
            refusedWith(etcd.getKVClient().put(bytes(at + "a"), bytes("one"), PutOption.builder().withLeaseId(id).build()),
                "requested lease not found");
        });

        CASES.put("lease_is_kept_alive", (etcd, at) -> {
            var lease = etcd.getLeaseClient();
            long id = got(lease.grant(2)).getID();
            got(etcd.getKVClient().put(bytes(at + "a"), bytes("one"), PutOption.builder().withLeaseId(id).build()));
            BlockingQueue<Long> renewed = new LinkedBlockingQueue<>();
            try (var keeping = lease.keepAlive(id, new StreamObserver<LeaseKeepAliveResponse>() {
                @Override
                public void onNext(LeaseKeepAliveResponse answer) {
                    renewed.add(answer.getTTL());
                }

                @Override
                public void onError(Throwable error) {}

                @Override
                public void onCompleted() {}
            })) {
                Thread.sleep(5000);
                same(value(etcd, at + "a"), "one");
                expect(renewed.size() >= 3 && renewed.stream().allMatch(ttl -> ttl == 2), renewed);
            }
            eventually("the entry goes when nobody renews", () -> value(etcd, at + "a") == null);
        });

        // --- locks and elections

        CASES.put("lock", (etcd, at) -> {
            long first = got(etcd.getLeaseClient().grant(60)).getID();
            long second = got(etcd.getLeaseClient().grant(60)).getID();
            var held = got(etcd.getLockClient().lock(bytes(at + "l"), first)).getKey();
            expect(text(held).startsWith(at + "l"), text(held));
            var waiting = etcd.getLockClient().lock(bytes(at + "l"), second);
            eventually("both stand in the queue", () ->
                names(etcd, at + "l", GetOption.builder().withKeysOnly(true)).length() > text(held).length() - at.length());
            expect(!waiting.isDone(), "two hold the lock");
            got(etcd.getLockClient().unlock(held));
            got(etcd.getLockClient().unlock(got(waiting).getKey()));
            same(names(etcd, at + "l", GetOption.builder()), "");
        });

        CASES.put("lock_ends_with_its_lease", (etcd, at) -> {
            long shortLease = got(etcd.getLeaseClient().grant(2)).getID();
            long longLease = got(etcd.getLeaseClient().grant(60)).getID();
            got(etcd.getLockClient().lock(bytes(at + "l"), shortLease));
            got(etcd.getLockClient().unlock(got(etcd.getLockClient().lock(bytes(at + "l"), longLease)).getKey()));
        });

        CASES.put("election", (etcd, at) -> {
            var election = etcd.getElectionClient();
            var name = bytes(at + "e");
            refusedWith(election.leader(name), "NoLeaderException");
            BlockingQueue<String> observed = new LinkedBlockingQueue<>();
            election.observe(name, new Election.Listener() {
                @Override
                public void onNext(LeaderResponse answer) {
                    observed.add(text(answer.getKv().getValue()));
                }

                @Override
                public void onError(Throwable error) {}

                @Override
                public void onCompleted() {}
            });
            long first = got(etcd.getLeaseClient().grant(60)).getID();
            long second = got(etcd.getLeaseClient().grant(60)).getID();
            var leader = got(election.campaign(name, first, bytes("first"))).getLeader();
            same(text(leader.getName()), at + "e");
            same(observed.poll(10, TimeUnit.SECONDS), "first");
            var waiting = election.campaign(name, second, bytes("second"));
            got(election.proclaim(leader, bytes("first again")));
            same(text(got(election.leader(name)).getKv().getValue()), "first again");
            same(observed.poll(10, TimeUnit.SECONDS), "first again");
            expect(!waiting.isDone(), "two lead");
            got(election.resign(leader));
            got(waiting);
            same(observed.poll(10, TimeUnit.SECONDS), "second");
            refusedWith(election.proclaim(leader, bytes("late")), "NotLeaderException");
            got(election.resign(got(waiting).getLeader()));
        });

        // --- the cluster

        CASES.put("status_and_members", (etcd, at) -> {
            put(etcd, at + "a", "one");
            List<Long> ids = got(etcd.getClusterClient().listMember()).getMembers().stream().map(Member::getId).toList();
            same(ids.size(), servers.length);
            for (String server : servers) {
                var status = got(etcd.getMaintenanceClient().statusMember(server));
                expect(status.getVersion().matches("\\d+\\.\\d+\\.\\d+"), status.getVersion());
                expect(ids.contains(status.getLeader()) && status.getDbSize() > 0 && status.getRaftIndex() > 0
                    && status.getRaftTerm() > 0, status);
            }
        });

        CASES.put("maintenance", (etcd, at) -> {
            long revision = put(etcd, at + "a", "one");
            var maintenance = etcd.getMaintenanceClient();
            List<Integer> hashes = new ArrayList<>();
            for (String server : servers) {
                hashes.add(got(maintenance.hashKV(server, revision)).getHash());
                got(maintenance.defragmentMember(server));
            }
            expect(hashes.stream().distinct().count() == 1, hashes);
            same(got(maintenance.listAlarms()).getAlarms().size(), 0);
            var snapshot = new ByteArrayOutputStream();
            same(got(maintenance.snapshot(snapshot)), (long) snapshot.size());
            expect(snapshot.size() > 1000, snapshot.size());
        });

        CASES.put("compaction", (etcd, at) -> {
            long first = put(etcd, at + "a", "one");
            long last = put(etcd, at + "a", "two");
            got(etcd.getKVClient().compact(last, CompactOption.builder().withCompactPhysical(true).build()));
            refusedWith(etcd.getKVClient().get(bytes(at + "a"), GetOption.builder().withRevision(first).build()),
                "required revision has been compacted");
            same(value(etcd, at + "a"), "two");
        });

        CASES.put("a_member_more_and_less", (etcd, at) -> {
            var cluster = etcd.getClusterClient();
            var added = got(cluster.addMember(List.of(URI.create("http://127.0.0.1:9")), true)).getMember();
            var promotion = refused(cluster.promoteMember(added.getId()));
            got(cluster.updateMember(added.getId(), List.of(URI.create("http://127.0.0.1:10"))));
            same(got(cluster.removeMember(added.getId())).getMembers().size(), servers.length);
            expect(added.isLearner() && promotion.contains("can only promote a learner member which is in sync with leader"), promotion);
        });

        CASES.put("roles_and_users", (etcd, at) -> {
            // This client cannot make a user without a password, so there is a role only.
            var auth = etcd.getAuthClient();
            ByteSequence end = OptionsUtil.prefixEndOf(bytes(at));
            got(auth.roleAdd(bytes("readers")));
            got(auth.roleGrantPermission(bytes("readers"), bytes(at), end, Permission.Type.READ));
            var permission = got(auth.roleGet(bytes("readers"))).getPermissions().get(0);
            same(List.of(text(permission.getKey()), permission.getPermType()), List.of(at, Permission.Type.READ));
            expect(got(auth.roleList()).getRoles().contains("readers"), "the role is missing");
            got(auth.roleRevokePermission(bytes("readers"), bytes(at), end));
            same(got(auth.roleGet(bytes("readers"))).getPermissions().size(), 0);
            got(auth.roleDelete(bytes("readers")));
            refusedWith(auth.roleGet(bytes("readers")), "role name not found");
        });

        CASES.put("users_with_passwords", (etcd, at) -> {
            var auth = etcd.getAuthClient();
            got(auth.userAdd(bytes("someone"), bytes("somepw")));
            expect(got(auth.userList()).getUsers().contains("someone"), "the user is missing");
            got(auth.userChangePassword(bytes("someone"), bytes("another")));
            same(got(auth.userGet(bytes("someone"))).getRoles(), List.of());
            got(auth.userDelete(bytes("someone")));
        });

        CASES.put("authentication_is_turned_on", (etcd, at) -> {
            var auth = etcd.getAuthClient();
            got(auth.userAdd(bytes("root"), bytes("rootpw")));
            got(auth.roleAdd(bytes("root")));
            got(auth.userGrantRole(bytes("root"), bytes("root")));
            got(auth.authEnable());
            try (Client root = Client.builder().endpoints(servers).user(bytes("root")).password(bytes("rootpw")).build()) {
                got(root.getAuthClient().authDisable());
            }
            got(auth.userDelete(bytes("root")));
            got(auth.roleDelete(bytes("root")));
        });

        // --- servers that ask who calls: root may do all, client what begins with /service/

        LOGIN_CASES.put("log_in", (nobody, at) -> {
            try (Client root = as("root", "CONFORMANCE_ROOT_PASSWORD"); Client user = as("client", "CONFORMANCE_CLIENT_PASSWORD")) {
                put(root, "/other", "secret");
                put(root, "/service/a", "one");
                same(value(user, "/service/a"), "one");
                put(user, "/service/a", "two");
                refusedWith(user.getKVClient().put(bytes("/other"), bytes("x")), "etcdserver: permission denied");
                refusedWith(user.getKVClient().get(bytes("/other")), "etcdserver: permission denied");
                var seen = new Recorder();
                try (var watcher = user.getWatchClient().watch(bytes("/service/a"), seen)) {
                    put(root, "/service/b", "not watched");
                    eventually("an event", () -> {
                        put(root, "/service/a", "three");
                        return !seen.answers.isEmpty();
                    });
                }
                long lease = got(user.getLeaseClient().grant(60)).getID();
                got(user.getKVClient().put(bytes("/service/leased"), bytes("x"), PutOption.builder().withLeaseId(lease).build()));
                got(user.getLeaseClient().revoke(lease));
            }
        });

        LOGIN_CASES.put("who_cannot_log_in", (nobody, at) -> {
            refusedWith(nobody.getKVClient().get(bytes("/service/a")), "etcdserver: user name is empty");
            try (Client wrong = Client.builder().endpoints(servers).user(bytes("root")).password(bytes("wrong")).build()) {
                // The client keeps the server's text to itself.
                refusedWith(wrong.getKVClient().get(bytes("/service/a")), "UNAUTHENTICATED");
            }
        });
    }

    private static Client as(String name, String password) {
        return Client.builder().endpoints(servers).user(bytes(name)).password(bytes(System.getenv(password))).build();
    }

    private static String run(ExecutorService runner, String name, Case body) throws Exception {
        try (Client etcd = Client.builder().endpoints(servers).build()) {
            Future<?> done = runner.submit(() -> {
                body.run(etcd, "/java/" + name + "-" + System.nanoTime() + "/");
                return null;
            });
            try {
                done.get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
                return "ok " + name;
            } catch (TimeoutException hanging) {
                done.cancel(true);
                return "failed " + name + ": hangs: no end after " + PATIENCE.toSeconds() + " s";
            } catch (ExecutionException failed) {
                Throwable why = failed.getCause();
                String where = Arrays.stream(why.getStackTrace()).filter(each -> each.getClassName().startsWith("Cases"))
                    .filter(each -> !List.of("expect", "same", "got").contains(each.getMethodName())).findFirst()
                        .map(each -> "line " + each.getLineNumber()).orElse("");
                return "failed " + name + ": " + String.valueOf(why).replace('\n', ' ') + " [" + where + "]";
            }
        }
    }

    public static void main(String[] args) throws Exception {
        servers = Arrays.stream(args[0].split(",")).map(address -> "http://" + address).toArray(String[]::new);
        String jar = Client.class.getProtectionDomain().getCodeSource().getLocation().getPath();
        System.out.println(jar.substring(jar.lastIndexOf('/') + 1) + ", Java " + System.getProperty("java.version"));
        ExecutorService runner = Executors.newCachedThreadPool();
        boolean passwords = System.getenv("CONFORMANCE_ROOT_PASSWORD") != null;
        for (Map.Entry<String, Case> each : (passwords ? LOGIN_CASES : CASES).entrySet()) {
            System.out.println(run(runner, each.getKey(), each.getValue()));
        }
        System.exit(0);
    }
}
