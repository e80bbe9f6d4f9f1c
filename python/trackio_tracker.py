"""trackio (Hugging Face).  track: {command: [python3, python/trackio_tracker.py, project=agents]}

Arguments are those of trackio.init: project, group, space_id, ... Without space_id everything stays on this machine.
The run is called NAME-ID, so a resumed run continues in its place.
"""

import trackio

from carnot_tracker import Tracker, serve

COLUMNS = ["step", "uid", "traj_id", "outcome", "score", "input", "output"]


class TrackioTracker(Tracker):
    def __init__(self, **settings):
        self.settings = dict({"project": "carnot"}, **settings)
        self.transcripts = []

    def start(self, run):
        self.run = trackio.init(name="%s-%s" % (run.name, run.id), config=run.config, resume="allow", **self.settings)

    def metrics(self, stage, step, values):
        self.flush()
        trackio.log(values, step=step)

    def transcript(self, transcript):
        self.transcripts.append([transcript[name] for name in COLUMNS])

    def flush(self):
        if self.transcripts:
            table = trackio.Table(columns=COLUMNS, data=self.transcripts)
            trackio.log({"transcripts": table}, step=self.transcripts[-1][0])
        self.transcripts = []

    def end(self, status, message):
        self.flush()
        trackio.finish()


if __name__ == "__main__":
    serve(TrackioTracker)
