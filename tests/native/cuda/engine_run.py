"""An engine that trains, as the checks drive it."""
import json, subprocess, threading


class EngineRun:
    """`command` writes to it, `until` reads its events up to one of that name; after `seconds` it is killed."""

    def __init__(self, call, log, seconds):
        self.log = open(log, "w")
        self.process = subprocess.Popen([str(c) for c in call], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.log, text=True)
        self.timer = threading.Timer(seconds, self.process.kill)
        self.timer.start()
        self.events = []

    def command(self, name):
        self.process.stdin.write(json.dumps({"command": name}) + "\n")
        self.process.stdin.flush()

    def until(self, name=None):
        for line in self.process.stdout:
            event = json.loads(line)
            self.log.write(line)
            self.log.flush()
            self.events.append(event)
            if event["event"] == name:
                return event
        self.process.wait()
        self.timer.cancel()
        return None
