"""MLflow.  track: {command: [python3, python/mlflow_tracker.py, experiment=agents, uri=sqlite:///mlflow.db]}

`uri` is the tracking server or store; without it MLflow's own default (MLFLOW_TRACKING_URI). The run carries Carnot's
id as the tag carnot_run, by which a resumed run finds it.
"""

import json
import re

import mlflow

from carnot_tracker import Tracker, serve

STATUS = {"complete": "FINISHED", "interrupted": "KILLED"}
PARAMETERS_AT_ONCE = 100  # MLflow's limit


def allowed(name):
    """MLflow's names have no @ and the like."""
    return re.sub(r"[^\w\-. :/]", "_", name.replace("@", "_at_"))


class MlflowTracker(Tracker):
    def __init__(self, experiment="carnot", uri=None):
        if uri is not None:
            mlflow.set_tracking_uri(uri)
        self.experiment = mlflow.set_experiment(experiment)
        self.transcripts = {}

    def start(self, run):
        found = mlflow.search_runs([self.experiment.experiment_id], "tags.carnot_run = '%s'" % run.id, max_results=1,
                                   output_format="list")
        if found:
            mlflow.start_run(run_id=found[0].info.run_id)
            return  # parameters may be written once only
        mlflow.start_run(run_name=run.name, tags={"carnot_run": run.id, "carnot_folder": run.folder})
        config = [(allowed(key), str(value)) for key, value in run.config.items()]
        for i in range(0, len(config), PARAMETERS_AT_ONCE):
            mlflow.log_params(dict(config[i:i + PARAMETERS_AT_ONCE]))

    def metrics(self, stage, step, values):
        self.flush()
        mlflow.log_metrics({allowed(name): value for name, value in values.items()}, step=step)

    def transcript(self, transcript):
        self.transcripts.setdefault(transcript["step"], []).append(json.dumps(transcript))

    def flush(self):
        for step, lines in self.transcripts.items():
            mlflow.log_text("\n".join(lines) + "\n", "transcripts/step_%d.jsonl" % step)
        self.transcripts = {}

    def end(self, status, message):
        self.flush()
        if message:
            mlflow.set_tag("carnot_message", message[:5000])
        mlflow.end_run(STATUS.get(status, "FAILED"))


if __name__ == "__main__":
    serve(MlflowTracker)
