import signal, time, os, subprocess
import pytest, psutil
from store.status import *
@pytest.mark.parametrize("how", ["quit", "group", "child", "int"])
def test_scratch(service, tiny, how):
    service.start_dispatcher()
    w = service.start_worker()
    run_id = service.add(tiny(3000))
    service.wait_for_step(run_id, 5)
    t = service.trainer()
    began = time.monotonic()
    if how == "quit": w.send_signal(signal.SIGQUIT)
    elif how == "group": os.killpg(w.pid, signal.SIGTERM)
    elif how == "child": service.pool_child().send_signal(signal.SIGTERM)
    elif how == "int": w.send_signal(signal.SIGINT)
    try:
        if how == "child":
            service.wait(run_id, Status.QUEUED, Status.RUNNING)
            service.until(lambda: len(service.attempts(run_id)) == 2, "second")
        else:
            try: print(how, "exit", w.wait(40))
            except subprocess.TimeoutExpired: print(how, "HANGS")
        print(how, "took", time.monotonic()-began, service.run(run_id).status, [(a.outcome, a.reason) for a in service.attempts(run_id)], [p.cmdline()[-5:] for p in service.kin()])
        print(service.log("worker").read_text()[-2500:])
    finally: pass
