"""The service: limits, swaps, what is under way when it stops, and what it leaves behind."""

import asyncio
import json
import shutil
import threading
import time

import pytest
from tests.sentences import assert_mentions
from tests.unit.serving.bundles import logits_bundle

from calibrant.client.messages import PredictBody
from calibrant.errors import BundleError, StoreUnavailable
from calibrant.serving import scoring
from calibrant.serving.http.problems import Problem
from calibrant.serving.service import Service
from calibrant.serving.settings import Settings
from calibrant.store import Store


class Gate:
    """Scores as ever, but waits before each batch until it may go on."""

    def __init__(self):
        self.entered, self.may_go = threading.Semaphore(0), threading.Semaphore(0)

    def __call__(self, batch):
        self.entered.release()
        assert self.may_go.acquire(timeout=60)
        return scoring.score(batch)


@pytest.fixture
def gate(monkeypatch):
    gate = Gate()
    monkeypatch.setattr("calibrant.serving.service.score", gate)
    return gate


@pytest.fixture
def folder(tmp_path):
    return logits_bundle(tmp_path / "returns").path


@pytest.fixture
def made(tmp_path, folder):
    def make(bundle=folder, **settings):
        chosen = {"db": str(tmp_path / "calibrant.db"), "max_wait": 0.0, **settings}
        return Service(Settings(bundle, device="cpu", **chosen))

    return make


def body_of(*logits, **more):
    rows = logits or ([9.0, 0.0, 0.0],)
    return json.dumps({"inputs": [{"logits": row} for row in rows], **more}).encode()


async def ask(service, *logits, key=None, retry=None, **more):
    body = body_of(*logits, **more)
    asked = PredictBody.model_validate_json(body)
    now = time.perf_counter()
    return json.loads(await service.predict(asked, body, key=key, retry=retry, since=now))


def run(service, use):
    """Start a service, have `use` talk to it, and stop it."""

    async def main():
        service.prepare()
        service.start()
        try:
            return await use(service)
        finally:
            await service.stop()

    return asyncio.run(main())


async def until(condition):
    """Wait for what another thread does."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.002)


async def refused(status, awaitable):
    with pytest.raises(Problem) as caught:
        await awaitable
    assert caught.value.status == status
    return caught.value


def test_a_wrong_folder_leaves_no_database_behind(made, tmp_path):
    with pytest.raises(BundleError):
        made(tmp_path / "nowhere").prepare()
    assert not (tmp_path / "calibrant.db").exists()


def test_preparing_puts_the_bundle_on_record(made, tmp_path):
    service = made()
    served = service.prepare()
    service.store.close()
    with Store(str(tmp_path / "calibrant.db")) as store:
        assert [each.hash for each in store.bundles.all()] == [served.hash]


def test_a_bundle_that_cannot_be_noted_yet_is_noted_with_its_first_prediction(made, monkeypatch):
    service = made()

    def away(**record):
        raise StoreUnavailable("away.")

    with monkeypatch.context() as patch:
        patch.setattr(service.store.bundles, "record", away)
        served = service.prepare()
        assert service.store.bundles.get(served.hash) is None
    run(service, ask)
    assert service.store.bundles.get(served.hash) is not None


def test_many_requests_at_once_are_each_answered_with_their_own(made):
    rows = [[float(i), 0.0, 0.0] for i in range(40)]

    async def use(service):
        sizes = [rows[: 1 + i % 5] for i in range(40)]
        answers = await asyncio.gather(
            *(ask(service, rows[i], *part) for i, part in enumerate(sizes))
        )
        return answers, sizes, service.slot.current.bundle

    service = made(max_batch=7)
    answers, sizes, bundle = run(service, use)
    for i, (answer, part) in enumerate(zip(answers, sizes, strict=True)):
        found = [list(each["probabilities"].values()) for each in answer["predictions"]]
        wanted = bundle.predict_proba([rows[i], *part])
        assert found == [pytest.approx(row.tolist(), abs=1e-12) for row in wanted]
    assert service.store.predictions.count() == sum(1 + len(part) for part in sizes)


def test_too_many_inputs_and_points_that_are_not_there(made):
    async def use(service):
        problem = await refused(413, ask(service, *[[1.0, 2.0, 3.0]] * 4))
        assert_mentions(problem.detail, "4 inputs exceed", "limit of 3")
        problem = await refused(422, ask(service, point=3))
        assert_mentions(problem.detail, "point:", "bundle", "operating points", "0 to 2", "got 3")
        problem = await refused(422, ask(service, [1.0]))
        assert problem.errors[0]["where"] == "inputs[0].logits"
        assert (await ask(service, point=2))["predictions"][0]["operating_point"] == 2

    run(made(max_inputs=3), use)


def test_a_point_of_a_bundle_without_any(made, tmp_path):
    async def use(service):
        problem = await refused(422, ask(service, point=0))
        assert_mentions(problem.detail, "point:", "bundle", "no operating points", "got 0")
        assert (await ask(service))["predictions"][0]["decision"] is None

    run(made(logits_bundle(tmp_path / "bare", "no points").path), use)


def test_beyond_the_queue_clients_are_told_to_come_again(made, gate):
    async def use(service):
        first = asyncio.create_task(ask(service, *[[1.0, 2.0, 3.0]] * 3))
        await asyncio.to_thread(gate.entered.acquire)
        second = asyncio.create_task(ask(service, [1.0, 2.0, 3.0]))
        await asyncio.sleep(0)
        problem = await refused(503, ask(service))
        assert problem.headers == {"Retry-After": "1"}
        assert_mentions(problem.detail, "many requests", "waiting")
        assert b"calibrant_queue_rows 4.0" in service.metrics.text()
        gate.may_go.release(2)
        await asyncio.gather(first, second)
        assert b"calibrant_queue_rows 0.0" in service.metrics.text()

    service = made(max_queue=4, max_inputs=4)
    run(service, use)
    assert service.store.predictions.count() == 4


def test_who_waits_too_long_is_told_to_come_again(made, gate):
    async def use(service):
        first = asyncio.create_task(ask(service))
        await asyncio.to_thread(gate.entered.acquire)
        service._batcher._timeout = -1.0  # whoever waits now has waited too long
        late = asyncio.create_task(ask(service))
        await asyncio.sleep(0)
        gate.may_go.release()
        problem = await refused(503, late)
        assert "waited too long" in problem.detail
        assert problem.headers == {"Retry-After": "1"}
        await first

    service = made()
    run(service, use)
    assert service.store.predictions.count() == 1


def test_one_request_that_the_model_cannot_score_takes_no_other_with_it(made, monkeypatch):
    gate, ill = Gate(), [5.0, 5.0, 5.0]

    def score(batch):
        if len(batch) == 1 and batch[0].use_case == "first":
            return gate(batch)
        if any(ill in each.rows for each in batch):
            raise ZeroDivisionError("ill")
        return scoring.score(batch)

    monkeypatch.setattr("calibrant.serving.service.score", score)

    async def use(service):
        first = asyncio.create_task(ask(service, use_case="first"))
        await asyncio.to_thread(gate.entered.acquire)
        rest = [
            asyncio.create_task(ask(service, row))
            for row in ([1.0, 0.0, 0.0], ill, [2.0, 0.0, 0.0])
        ]
        await asyncio.sleep(0)
        gate.may_go.release()
        found = await asyncio.gather(first, *rest, return_exceptions=True)
        assert isinstance(found.pop(2), ZeroDivisionError)
        return found

    service = made()
    assert len(run(service, use)) == 3
    assert service.store.predictions.count() == 3


def test_what_the_store_cannot_take_is_told_and_nothing_is_answered(made, monkeypatch):
    service = made()
    add = service.store.predictions.add

    def full(requests):
        raise StoreUnavailable("the disk is full.")

    async def use(service):
        with monkeypatch.context() as patch:
            patch.setattr(service.store.predictions, "add", full)
            with pytest.raises(StoreUnavailable):
                await ask(service)
        assert service.store.predictions.add == add
        return await ask(service)  # it recovers by itself

    run(service, use)
    assert service.store.predictions.count() == 1


def test_a_retried_request_is_on_record_once_for_each_key(made):
    async def use(service):
        shop, other = (service.store.keys.add(name, "predict")[0] for name in ("shop", "other"))
        first = await ask(service, key=shop, retry="a")
        assert await ask(service, key=shop, retry="a") == {**first, "repeated": True}
        for key, retry in ((other, "a"), (None, "a"), (shop, "b"), (None, f"{shop.id}:a")):
            found = await ask(service, key=key, retry=retry)
            assert found["repeated"] is False
        await refused(409, ask(service, [1.0, 2.0, 3.0], key=shop, retry="a"))
        assert {(await ask(service))["request"] for _ in range(3)}.isdisjoint({first["request"]})

    service = made()
    run(service, use)
    assert service.store.predictions.count() == 8


def test_the_same_request_sent_at_once_many_times_is_on_record_once(made):
    async def use(service):
        return await asyncio.gather(*(ask(service, retry="same") for _ in range(20)))

    service = made()
    answers = run(service, use)
    assert len({answer["predictions"][0]["id"] for answer in answers}) == 1
    assert sum(not answer["repeated"] for answer in answers) == 1
    assert service.store.predictions.count() == 1


def replaced(folder, source):
    shutil.rmtree(folder)
    shutil.copytree(source, folder)


def test_requests_are_decided_by_the_bundle_they_were_checked_against(made, gate, folder, tmp_path):
    newer = logits_bundle(tmp_path / "newer", "no points", warmth=5.0)

    async def use(service):
        old = service.slot.current.hash
        first = asyncio.create_task(ask(service))
        await asyncio.to_thread(gate.entered.acquire)
        before = asyncio.create_task(ask(service, point=2))  # the newer one has no points
        await asyncio.sleep(0)
        replaced(folder, newer.path)
        await asyncio.to_thread(service.reload)
        after = asyncio.create_task(ask(service))
        await asyncio.sleep(0)
        gate.may_go.release(3)
        found = [each["bundle"]["hash"] for each in await asyncio.gather(first, before, after)]
        assert found == [old, old, newer.manifest["sha256"]]
        assert (await before)["predictions"][0]["operating_point"] == 2
        assert (await after)["predictions"][0]["operating_point"] is None
        assert b"calibrant_bundle_swaps_total 1.0" in service.metrics.text()

    service = made()
    run(service, use)
    assert len(service.store.bundles.all()) == 2


def test_a_retry_that_the_newer_bundle_cannot_read_gets_its_answer(made, folder, tmp_path):
    newer = logits_bundle(tmp_path / "newer", "no points")

    async def use(service):
        first = await ask(service, point=2, retry="order-17")
        replaced(folder, newer.path)
        await asyncio.to_thread(service.reload)
        assert await ask(service, point=2, retry="order-17") == {**first, "repeated": True}
        with pytest.raises(Problem, match="no operating points"):
            await ask(service, point=2, retry="order-18")
        with pytest.raises(Problem, match="no operating points"):
            await ask(service, point=2)

    run(made(), use)


def test_the_folder_is_watched(made, folder, tmp_path, monkeypatch):
    monkeypatch.setattr("calibrant.serving.service._CHECK_EVERY", 0.005)
    newer = logits_bundle(tmp_path / "newer", "no points")

    async def use(service):
        (folder / "manifest.json").write_text("{}")
        await until(lambda: b"calibrant_bundle_refused 1.0" in service.metrics.text())
        assert (await ask(service))["predictions"][0]["decision"] == "act"
        replaced(folder, newer.path)
        await until(lambda: service.slot.current.hash == newer.manifest["sha256"])
        await until(lambda: b"calibrant_bundle_refused 0.0" in service.metrics.text())
        assert b"calibrant_bundle_swaps_total 1.0" in service.metrics.text()
        assert (await ask(service))["predictions"][0]["decision"] is None

    run(made(), use)


def test_the_watch_goes_on_after_a_failure(made, monkeypatch, caplog):
    monkeypatch.setattr("calibrant.serving.service._CHECK_EVERY", 0.005)
    looks = []

    def look():
        looks.append(1)
        raise ZeroDivisionError("of ours") if len(looks) % 2 else StoreUnavailable("away.")

    async def use(service):
        monkeypatch.setattr(service.slot, "look", look)
        await until(lambda: len(looks) > 4)

    run(made(), use)
    assert "checking for a newer bundle failed" in caplog.text


def test_keys_that_were_used_are_noted_at_the_end(made):
    async def use(service):
        _, token = service.store.keys.add("shop", "predict")
        await service.access.admit(f"Bearer {token}", "predict")
        assert service.store.keys.all()[0].last_used is None

    service = made()
    run(service, use)
    assert service.store.keys.all()[0].last_used is not None


def test_stopping_answers_what_is_under_way_and_takes_no_more(made, gate, tmp_path):
    async def main():
        service = made()
        service.prepare()
        service.start()
        asked = [asyncio.create_task(ask(service)) for _ in range(5)]
        await asyncio.to_thread(gate.entered.acquire)
        stopping = asyncio.create_task(service.stop())
        await until(lambda: service.draining)
        problem = await refused(503, ask(service))
        assert_mentions(problem.detail, "service", "stopping", "send", "request again")
        assert not stopping.done()
        gate.may_go.release(5)
        answers = await asyncio.gather(*asked)
        await stopping
        return [each["predictions"][0]["id"] for each in answers]

    answered = asyncio.run(main())
    with Store(str(tmp_path / "calibrant.db")) as store:
        assert sorted(answered) == sorted(each.id for each in store.predictions.search())


def test_what_takes_longer_than_the_drain_is_told(made, gate, caplog):
    async def main():
        service = made(drain=0.01)
        service.prepare()
        service.start()
        asked = asyncio.create_task(ask(service))
        await asyncio.to_thread(gate.entered.acquire)
        await service.stop()
        gate.may_go.release()
        await asked

    asyncio.run(main())
    assert_mentions(caplog.text, "requests", "in progress after 0.01 s")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_model_leaves_a_core_for_requests(made, text_folder, monkeypatch, workers):
    left = []
    monkeypatch.setattr("calibrant.cores.leave_a_core", left.append)

    async def use(service):
        return None

    run(made(text_folder, workers=workers), use)
    assert left == [workers]
    run(made(workers=workers), use)  # without a model there is nothing to leave
    assert left == [workers]
