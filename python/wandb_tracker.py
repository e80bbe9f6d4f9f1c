"""Weights & Biases (wandb).  track: {command: [python3, python/wandb_tracker.py, project=agents]}

Arguments are those of wandb.init: project, entity, group, mode=offline, dir, ... The run's id is Carnot's, so a resumed
run continues in its place.
"""

import wandb

from carnot_tracker import Tracker, serve

COLUMNS = ["step", "uid", "traj_id", "outcome", "score", "input", "output"]


class WandbTracker(Tracker):
    def __init__(self, **settings):
        self.settings = dict({"project": "carnot"}, **settings)
        self.transcripts = []

    def start(self, run):
        settings = dict({"name": run.name}, **self.settings)
        self.run = wandb.init(id=run.id, resume="allow", config=run.config, **settings)
        # Steps are a metric: wandb's own must not repeat.
        self.run.define_metric("*", step_metric="step")
        self.run.define_metric("sft/*", step_metric="sft/step")

    def metrics(self, stage, step, values):
        self.flush()
        self.run.log(dict(values, **{"sft/step" if stage == "sft" else "step": step}))

    def transcript(self, transcript):
        self.transcripts.append([transcript[name] for name in COLUMNS])

    def flush(self):
        if self.transcripts:
            table = wandb.Table(columns=COLUMNS, data=self.transcripts)
            self.run.log({"step": self.transcripts[-1][0], "transcripts": table})
        self.transcripts = []

    def end(self, status, message):
        self.flush()
        self.run.summary["status"] = status
        self.run.finish(exit_code=0 if status in ("complete", "interrupted") else 1)


if __name__ == "__main__":
    serve(WandbTracker)
