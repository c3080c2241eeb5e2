%% Actor benchmarks in Erlang.      erl ... -run savina main <benchmark> <threads> <N>
%%
%% What   Savina's set and three more, one process per actor. Every benchmark checks its result
%%        and prints one line:
%%        peer benchmark threads operations seconds operations/s bytes-per-actor|-
%% Tuned  The JIT as Debian ships it. Flags (in run.sh): +S T:T schedulers, +sbt db binds them to
%%        cores, +sbwt very_long spins before sleeping, +P 2000000 for a million processes.
%%        Processes that receive a flood keep their queue off_heap, so that it is neither copied
%%        by the garbage collector nor (OTP 25) contended by parallel senders.
%% Fair   Mailboxes are Erlang's own, unbounded. The random numbers stay in 58 bits: no bignums.
%%        WAITING=hibernate makes the processes of fork-join-create hibernate while they wait:
%%        the smallest they can be. run.sh measures both and reports the better one.
-module(savina).
-export([main/1, sleeper/2]).
-define(MILLION, 1000000).
-define(BITS58, 16#3FFFFFFFFFFFFFF).

main([Name, Threads, N]) ->
    Me = self(),
    %% an own process with a roomy heap: collecting the harness is not what is measured
    spawn_opt(fun() ->
        {Ops, Micros, Bytes} = try bench(Name, list_to_integer(N))
                               catch Class:Reason:Stack -> fail({Class, Reason, Stack}) end,
        Seconds = Micros / 1.0e6,
        Peer = case hibernates() of true -> "erlang-hibernate"; false -> "erlang" end,
        io:format("~s ~s ~s ~b ~.6f ~b ~s~n",
                  [Peer, Name, Threads, Ops, Seconds, round(Ops / Seconds), Bytes]),
        Me ! done
    end, [{min_heap_size, 100000}, {message_queue_data, off_heap}]),
    receive done -> erlang:halt(0) end.

fail(What) ->
    io:format(standard_error, "FAIL: erlang: ~p~n", [What]),
    erlang:halt(1).

hibernates() -> os:getenv("WAITING") =:= "hibernate".

now_us() -> erlang:monotonic_time(microsecond).

anonymous_memory() ->
    {ok, Status} = file:read_file("/proc/self/status"),
    {match, [KiB]} = re:run(Status, "RssAnon:\\s+([0-9]+)", [{capture, [1], list}]),
    list_to_integer(KiB) * 1024.

per_actor(Before, N) -> integer_to_list((anonymous_memory() - Before) div N).

%% xorshift in 58 bits
random(X0) ->
    X1 = X0 bxor ((X0 bsl 13) band ?BITS58),
    X2 = X1 bxor (X1 bsr 7),
    X2 bxor ((X2 bsl 17) band ?BITS58).
seed(I) -> random(random(random((I * 2654435761 + 88172645463325) band ?BITS58))).
below(X, N) -> ((X bsr 26) * N) bsr 32.
other(R, I, Count) ->
    R1 = random(R),
    K = below(R1, Count - 1) + 1,
    if K >= I -> {R1, K + 1}; true -> {R1, K} end.

bench("ping-pong", N) -> ping_pong(N);
bench("counting", N) -> fan_in(N, 1);
bench("thread-ring", N) -> thread_ring(N);
bench("fork-join-create", N) ->
    create(N, case hibernates() of true -> fun sleeper/2; false -> fun child/2 end);
bench("fork-join-throughput", N) -> throughput(N);
bench("big", N) -> big(N, 120);
bench("chameneos", N) -> chameneos(N);
bench("bank-transaction", N) -> bank(N);
bench("fan-in-10", N) -> fan_in(N, 10);
bench("fan-in-1000", N) -> fan_in(N, 1000);
bench("random-counters-1M", N) -> random_counters(N).

%% ── ping-pong: two actors, N round trips ─────────────────────────────────────────────────────
ping_pong(N) ->
    Me = self(),
    T = now_us(),
    Pong = spawn(fun() -> pong(0, Me) end),
    spawn(fun() -> Pong ! {self(), N}, ping(Pong, 0, Me) end),
    A = receive {ping, X} -> X end,
    B = receive {pong, Y} -> Y end,
    D = now_us() - T,
    N = A, N = B,
    {2 * N, D, "-"}.

ping(Pong, Count, Me) ->
    receive
        1 -> Pong ! stop, Me ! {ping, Count + 1};
        V -> Pong ! {self(), V - 1}, ping(Pong, Count + 1, Me)
    end.

pong(Count, Me) ->
    receive
        {From, V} -> From ! V, pong(Count + 1, Me);
        stop -> Me ! {pong, Count}
    end.

%% ── counting and fan-in: 1, 10 or 1000 producers, one counter ────────────────────────────────
%% With off_heap OTP 25 orders signals per sender only: the counter sees an end from each producer.
fan_in(N, Producers) ->
    Me = self(),
    Each = N div Producers,
    T = now_us(),
    Counter = spawn_opt(fun() -> fan_counter(0, Producers, Me) end, [{message_queue_data, off_heap}]),
    [spawn(fun() -> produce(Each, Counter) end) || _ <- lists:seq(1, Producers)],
    Sum = receive {total, S} -> S end,
    D = now_us() - T,
    Sum = Each * Producers,
    {Sum, D, "-"}.

produce(0, Counter) -> Counter ! fin;
produce(N, Counter) -> Counter ! 1, produce(N - 1, Counter).

fan_counter(Sum, 0, Me) -> Me ! {total, Sum};
fan_counter(Sum, Producers, Me) ->
    receive
        V when is_integer(V) -> fan_counter(Sum + V, Producers, Me);
        fin -> fan_counter(Sum, Producers - 1, Me)
    end.

%% ── thread-ring: 100 actors, N hops ──────────────────────────────────────────────────────────
thread_ring(N) ->
    Me = self(),
    T = now_us(),
    First = spawn(fun() -> receive {next, P} -> ring(0, P, Me) end end),
    Second = lists:foldl(fun(I, P) -> spawn(fun() -> ring(I, P, Me) end) end,
                         First, lists:seq(99, 1, -1)),
    First ! {next, Second},
    First ! N,
    Last = receive {last, X} -> X end,
    D = now_us() - T,
    Last = N rem 100,
    {N, D, "-"}.

ring(I, Next, Me) ->
    receive
        0 -> Me ! {last, I};
        V -> Next ! V - 1, ring(I, Next, Me)
    end.

%% ── fork-join-create: N actors, one message each; all stay alive ─────────────────────────────
create(N, Child) ->
    Me = self(),
    erlang:garbage_collect(),
    Before = anonymous_memory(),
    T = now_us(),
    Creator = spawn_opt(fun() -> create(N, Child, Me, []) end, [{min_heap_size, 4 * N}]),
    N = collect(N, 0),
    D = now_us() - T,
    Creator ! {count, Me},
    N = receive {created, Count} -> Count end,
    {N, D, per_actor(Before, N)}.

create(0, _, _, All) -> receive {count, From} -> From ! {created, length(All)} end;
create(N, Child, Me, All) ->
    P = spawn(fun() -> Child(0, Me) end),
    P ! 1,
    create(N - 1, Child, Me, [P | All]).

child(Sum, Me) -> receive V -> Me ! {res, Sum + V}, child(Sum + V, Me) end.
sleeper(Sum, Me) ->
    receive V -> Me ! {res, Sum + V}, erlang:hibernate(?MODULE, sleeper, [Sum + V, Me]) end.

collect(0, Sum) -> Sum;
collect(N, Sum) -> receive {res, V} -> collect(N - 1, Sum + V) end.

%% ── fork-join-throughput: one sender, 60 actors, N messages each, round robin ────────────────
throughput(N) ->
    Me = self(),
    T = now_us(),
    Workers = [spawn_opt(fun() -> worker(N, 0, Me) end, [{message_queue_data, off_heap}])
               || _ <- lists:seq(1, 60)],
    spawn(fun() -> rounds(N, Workers) end),
    Sum = collect(60, 0),
    D = now_us() - T,
    Sum = 60 * N,
    {Sum, D, "-"}.

worker(0, Sum, Me) -> Me ! {res, Sum};
worker(N, Sum, Me) -> receive V -> worker(N - 1, Sum + V, Me) end.

rounds(0, _) -> ok;
rounds(N, Workers) -> one_each(Workers), rounds(N - 1, Workers).
one_each([P | Rest]) -> P ! 1, one_each(Rest);
one_each([]) -> ok.

%% ── big: 120 actors, each N pings to random others, one outstanding ──────────────────────────
big(N, Actors) ->
    Me = self(),
    T = now_us(),
    All = [spawn(fun() -> big_start(I, N, Me) end) || I <- lists:seq(1, Actors)],
    [P ! {all, list_to_tuple(All)} || P <- All],
    [receive big_done -> ok end || _ <- All],
    D = now_us() - T,
    [P ! stop || P <- All],
    Totals = [receive {totals, X, Y} -> {X, Y} end || _ <- All],
    Expected = Actors * N,
    Expected = lists:sum([X || {X, _} <- Totals]),
    Expected = lists:sum([Y || {_, Y} <- Totals]),
    {2 * Expected, D, "-"}.

big_start(I, N, Me) ->
    receive {all, All} -> big(All, I, big_ping(All, I, seed(I)), N, 0, 0, Me) end.

big_ping(All, I, R) ->
    {R1, K} = other(R, I, tuple_size(All)),
    element(K, All) ! self(),
    R1.

big(All, I, R, N, Pings, Pongs, Me) ->
    receive
        P when is_pid(P) -> P ! pong, big(All, I, R, N, Pings + 1, Pongs, Me);
        pong when Pongs + 1 < N -> big(All, I, big_ping(All, I, R), N, Pings, Pongs + 1, Me);
        pong -> Me ! big_done, big(All, I, R, N, Pings, Pongs + 1, Me);
        stop -> Me ! {totals, Pings, Pongs}
    end.

%% ── chameneos: 100 creatures meet N times at the mall ────────────────────────────────────────
chameneos(N) ->
    Me = self(),
    T = now_us(),
    Mall = spawn(fun() -> mall(N, none, 0, 0, Me) end),
    [spawn(fun() -> Mall ! {meet, self(), C rem 3}, creature(Mall, C rem 3, 0) end)
     || C <- lists:seq(1, 100)],
    Sum = receive {meetings, S} -> S end,
    D = now_us() - T,
    Sum = 2 * N,
    {N, D, "-"}.

mall(Left, Waiting, Faded, Sum, Me) ->
    receive
        {meet, P, _} when Left =:= 0 -> P ! fade, mall(0, Waiting, Faded, Sum, Me);
        {meet, P, _} when Waiting =:= none -> mall(Left, P, Faded, Sum, Me);
        {meet, _, _} = Meet -> Waiting ! Meet, mall(Left - 1, none, Faded, Sum, Me);
        {faded, K} when Faded =:= 99 -> Me ! {meetings, Sum + K};
        {faded, K} -> mall(Left, Waiting, Faded + 1, Sum + K, Me)
    end.

creature(Mall, Color, Meetings) ->
    receive
        {meet, P, Other} ->
            Mixed = complement(Color, Other),
            P ! {change, Mixed},
            Mall ! {meet, self(), Mixed},
            creature(Mall, Mixed, Meetings + 1);
        {change, Mixed} ->
            Mall ! {meet, self(), Mixed},
            creature(Mall, Mixed, Meetings + 1);
        fade -> Mall ! {faded, Meetings}
    end.

complement(A, A) -> A;
complement(A, B) -> 3 - A - B.

%% ── bank-transaction: 1000 accounts, a teller with 256 transfers outstanding ─────────────────
bank(N) ->
    Me = self(),
    T = now_us(),
    spawn(fun() -> teller_start(N, Me) end),
    All = receive {bank_done, Accounts} -> Accounts end,
    D = now_us() - T,
    [A ! {report, Me} || A <- All],
    Reports = [receive {report, B, Db, Cr} -> {B, Db, Cr} end || _ <- All],
    0 = lists:sum([B || {B, _, _} <- Reports]),
    N = lists:sum([Db || {_, Db, _} <- Reports]),
    N = lists:sum([Cr || {_, _, Cr} <- Reports]),
    {N, D, "-"}.

teller_start(N, Me) ->
    Teller = self(),
    All = [spawn(fun() -> account(Teller, 0, 0, 0) end) || _ <- lists:seq(1, 1000)],
    Accounts = list_to_tuple(All),
    Window = min(256, N),
    R = open_window(Window, seed(1), Accounts),
    teller(N, Window, R, Accounts, 0),
    Me ! {bank_done, All}.

open_window(0, R, _) -> R;
open_window(Left, R, Accounts) -> open_window(Left - 1, transfer(R, Accounts, Left), Accounts).

transfer(R, Accounts, I) ->
    R1 = random(R),
    A = below(R1, 1000) + 1,
    {R2, B} = other(R1, A, 1000),
    element(A, Accounts) ! {debit, 1 + I rem 100, element(B, Accounts)},
    R2.

teller(N, _, _, _, N) -> ok;
teller(N, N, R, Accounts, Acks) -> receive ack -> teller(N, N, R, Accounts, Acks + 1) end;
teller(N, Sent, R, Accounts, Acks) ->
    receive ack -> teller(N, Sent + 1, transfer(R, Accounts, Sent), Accounts, Acks + 1) end.

account(Teller, Balance, Debits, Credits) ->
    receive
        {debit, Amount, To} ->
            To ! {credit, Amount, self()},
            account(Teller, Balance - Amount, Debits + 1, Credits);
        {credit, Amount, From} ->
            From ! ack,
            account(Teller, Balance + Amount, Debits, Credits + 1);
        ack -> Teller ! ack, account(Teller, Balance, Debits, Credits);
        {report, To} -> To ! {report, Balance, Debits, Credits}
    end.

%% ── random-counters-1M: two drivers, N increments to random ones of a million live actors ────
random_counters(N) ->
    Me = self(),
    erlang:garbage_collect(),
    Before = anonymous_memory(),
    All = [spawn(fun() -> counter(0) end) || _ <- lists:seq(1, ?MILLION)],
    persistent_term:put(counters, list_to_tuple(All)),
    0 = sweep(All),                                 % not timed: everyone is alive and waits
    Bytes = per_actor(Before, ?MILLION),
    Each = N div 2,
    T = now_us(),
    [spawn(fun() -> drive(Each, seed(I), persistent_term:get(counters)), Me ! driven end)
     || I <- [1, 2]],
    receive driven -> ok end,
    receive driven -> ok end,
    Sum = sweep(All),
    D = now_us() - T,
    Sum = 2 * Each,
    {Sum + 2 * ?MILLION, D, Bytes}.

counter(Sum) ->
    receive
        V when is_integer(V) -> counter(Sum + V);
        {get, From} -> From ! {res, Sum}, counter(Sum)
    end.

drive(0, _, _) -> ok;
drive(N, R, Counters) ->
    R1 = random(R),
    element(below(R1, ?MILLION) + 1, Counters) ! 1,
    drive(N - 1, R1, Counters).

sweep(All) ->
    Me = self(),
    spawn(fun() -> [P ! {get, Me} || P <- All] end),
    collect(?MILLION, 0).
