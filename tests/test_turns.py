"""A cell that measures runs alone, whatever else wants to run, and nobody waits for ever."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from _ext.execution.turns import Turns

pytestmark = pytest.mark.timeout(60)


class Room:
    """Who is in at a time, and what should never be."""

    def __init__(self, cores):
        self.turns = Turns(cores)
        self.inside = []
        self.most = 0
        self.wrong = []
        self.lock = threading.Lock()

    def stay(self, kind, seconds=0.002):
        with getattr(self.turns, kind)():
            with self.lock:
                self.inside.append(kind)
                self.most = max(self.most, len(self.inside))
                if "alone" in self.inside and len(self.inside) > 1:
                    self.wrong.append(list(self.inside))
            time.sleep(seconds)
            with self.lock:
                self.inside.remove(kind)


@pytest.mark.parametrize("cores", [1, 2, 3])
def test_what_measures_is_alone_and_others_fill_the_cores(cores):
    room, chance = Room(cores), random.Random(cores)
    pages = [[chance.choice(["alone", "together", "together"]) for _ in range(20)] for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda page: [room.stay(kind) for kind in page], pages))
    assert not room.wrong
    assert room.most == cores
    assert not room.inside


def test_kernels_start_beside_cells_and_never_beside_what_measures():
    room, chance = Room(2), random.Random(0)
    pages = [["beside", *chance.choices(["alone", "together"], k=8), "beside"] for _ in range(20)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda page: [room.stay(kind) for kind in page], pages))
    assert not room.wrong
    assert room.most > 2, "a start took the core of a cell"
    assert not room.inside


def test_what_measures_is_let_in_although_others_keep_coming():
    room, stop = Room(2), threading.Event()

    def crowd():
        while not stop.is_set():
            room.stay("together")

    with ThreadPoolExecutor(3) as pool:
        others = [pool.submit(crowd) for _ in range(2)]
        time.sleep(0.02)
        waiting = pool.submit(room.stay, "alone")
        waiting.result(timeout=20)
        stop.set()
        for other in others:
            other.result(timeout=20)
    assert not room.wrong


def test_others_are_let_in_although_much_measures():
    room, stop = Room(2), threading.Event()

    def measure():
        while not stop.is_set():
            room.stay("alone")

    with ThreadPoolExecutor(4) as pool:
        measuring = [pool.submit(measure) for _ in range(3)]
        time.sleep(0.02)
        pool.submit(room.stay, "together").result(timeout=20)
        stop.set()
        for job in measuring:
            job.result(timeout=20)
    assert not room.wrong


def test_an_error_gives_the_turn_back():
    turns = Turns(1)
    for kind in (turns.alone, turns.together, turns.alone):
        with pytest.raises(ZeroDivisionError), kind():
            raise ZeroDivisionError


def test_a_thread_that_has_its_turn_goes_on():
    turns = Turns(1)
    with turns.together(), turns.together():
        pass
    with turns.alone(), turns.together():
        pass
    with turns.alone():
        pass
