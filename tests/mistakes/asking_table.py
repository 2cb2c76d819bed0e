"""Mistakes in questions to a trained model: the command line, and what the one line says."""

_MODEL = ("forecast", "reconstruct", "interpolate", "denoise")
"""Commands that take a run and a file and write trajectories."""
_ASKING = (*_MODEL, "infer", "evaluate", "report", "explore")
"""Commands that take a run and a file."""
_REST = {
    "infer": "--target l", "evaluate": "", "report": "-o o.html", "explore": "-o o.html",
}  # fmt: skip


def _ask(command: str, run: str, file: str) -> str:
    rest = _REST.get(command, "-o o.npz")
    return f"{command} {run} {file} {rest}".strip()


RUNS = [
    ("nowhere", "nowhere is not a folder"),
    ("d.npz", "d.npz is not a folder"),
    ("empty-folder", "empty-folder has no model.safetensors"),
    ("run-cut", "run-cut/model.safetensors is damaged"),
    ("run-flipped", "run-flipped/model.safetensors is damaged"),
    ("run-junk", "run-junk/model.safetensors is damaged"),
    ("run-empty", "run-empty/model.safetensors is damaged"),
    ("mech-cut", "mech-cut/mechanics.safetensors is damaged"),
    ("mech-flipped", "mech-flipped/mechanics.safetensors is damaged"),
]
FILES = [
    ("nowhere.npz", "there is no file nowhere.npz"),
    ("empty.npz", "empty.npz is empty (0 bytes)"),
    ("text.npz", "text.npz: it cannot be read as NumPy .npz"),
    ("binary.csv", "binary.csv: it is not text in UTF-8"),
    ("header.csv", "header.csv: it has no rows of data"),
    ("folder.npz", "folder.npz is a folder"),
    ("noending", "noending: the ending '' is not one of .npz"),
    ("double.npz", "2 (a, b). Use data of the same system."),
    ("nan.npz", ""),
]
OUTPUTS = [
    ("o.txt", "o.txt: the ending '.txt' chooses no format"),
    ("d.npz", "d.npz is an input and would be replaced"),
    ("run", "run is a folder; name a file"),
    ("nowhere/o.npz", "the folder nowhere does not exist"),
    ("/proc/o.npz", "/proc/o.npz cannot be written"),
    ("pipe.npz", "pipe.npz is a device or pipe"),
    ("''", "is a folder; name a file to write"),
]
ASKING = [
    *((_ask(command, run, "d.npz"), said) for command in _ASKING[:2] for run, said in RUNS),
    *((_ask(command, RUNS[k][0], "d.npz"), RUNS[k][1])
      for command in _ASKING[2:] for k in (0, 4)),
    *((_ask(command, "run", file), said) for command in ("forecast", "evaluate")
      for file, said in FILES),
    *((_ask(command, "run", FILES[k][0]), FILES[k][1])
      for command in _ASKING if command not in ("forecast", "evaluate") for k in (0, 2)),
    *((f"forecast run d.npz -o {file}", said) for file, said in OUTPUTS),
    *((f"{command} run d.npz -o {file}", said)
      for command in _MODEL[1:] for file, said in (OUTPUTS[0], OUTPUTS[1], OUTPUTS[4])),
    # forecast
    ("forecast run d.npz -o o.npz --observe 0", "--observe should be greater than or equal to 1"),
    ("forecast run d.npz -o o.npz --observe 1.5", "--observe: expected an integer, got '1.5'"),
    ("forecast run d.npz -o o.npz --observe 99", "--observe 99, but the trajectories"),
    ("forecast run d.npz -o o.npz --steps 0", "--steps should be greater than or equal to 1"),
    ("forecast run d.npz -o o.npz --steps 1000000000", "of memory, and"),
    ("forecast run d.npz -o o.npz --steps 1" + 30 * "0", "steps must be at most"),
    ("forecast run d.npz -o o.npz --samples -1", "--samples should be greater than or equal to 0"),
    ("forecast run d.npz -o o.npz --samples 1000000000", "1000000000 samples of each would need"),
    ("forecast run d.npz -o o.npz --seed -1", "--seed should be greater than or equal to 0"),
    ("forecast run d.npz -o o.npz --seed 1" + 30 * "0", "--seed should be less than"),
    ("forecast run d.npz -o o.npz --stepz 4", "has no option --stepz (did you mean '--steps'?)"),
    ("forecast run d.npz d.npz -o o.npz", "does not know what to do with 'd.npz'"),
    ("forecast run -o o.npz", "missing: FILE."),
    ("forecast run d.npz", "missing: -o FILE"),
    ("forecast run huge.npz -o o.npz", "times as large as in training; check their units"),
    ("forecast run long-times.npz -o o.npz", "time steps of the model"),
    ("forecast mech d.npz -o o.npz", "fitted with angles=(False,), but these data have (True,)"),
    ("forecast mech pos.npz -o o.npz --samples 3", "mechanics draw no samples"),
    ("forecast mech pos.npz -o o.npz --observe 1", "has fewer than two known positions"),
    # reconstruct, interpolate, denoise, infer, evaluate
    ("reconstruct run long-times.npz -o o.npz", "at most 1048576 are reconstructed at once"),
    ("reconstruct run nan.npz -o o.npz", "trajectory '0' has no known number"),
    ("reconstruct mech double.npz -o o.npz", "the model was fitted to 1 coordinates (q)"),
    ("interpolate run d.npz -o o.npz --factor 1", "--factor should be greater than or equal to 2"),
    ("interpolate run d.npz -o o.npz", "the model was trained with time step 0.1"),
    ("interpolate run d.npz -o o.npz --thin --factor 100", "so that two states remain; got 100"),
    ("interpolate run uneven.npz -o o.npz", "the times are not evenly spaced"),
    ("interpolate run one.npz -o o.npz", "a single state has no time step"),
    ("interpolate mech pos.npz -o o.npz --factor 2", "the model was trained with time step 0.05"),
    ("denoise run d.npz -o o.npz", "denoising needs the noise of the measurements"),
    ("denoise run d.npz -o o.npz --noise 0", "--noise should be greater than 0, got 0.0"),
    ("denoise run d.npz -o o.npz --noise nan", "--noise should be a finite number, got nan"),
    ("denoise run d.npz -o o.npz --noise x", "--noise: expected a number, got 'x'"),
    ("denoise run nan.npz -o o.npz --noise 0.1", "trajectory '0' has no known number"),
    ("infer run d.npz", "missing: --target"),
    ("infer run d.npz --target nope", "no parameter 'nope' to learn from; they have: g, l"),
    ("infer run d.npz --target g", "g is 0.981 in all training data"),
    ("infer mech pos.npz --target l", "mech holds mechanics, which have no latent code"),
    ("infer run d.npz --target l -o o.npz", "the ending '.npz' chooses no format; use one of .csv"),
    ("infer run d.npz --target l -o d.npz", "d.npz is an input"),
    ("infer run d.npz --target l -o nowhere/o.csv", "the folder nowhere does not exist"),
    ("evaluate run d.npz --observe 41", "--observe 41 leaves nothing to predict"),
    ("evaluate run d.npz --ahead 1000", "1000 states cannot be compared: 25 follow the 16"),
    ("evaluate run d.npz --ahead 0", "--ahead should be greater than or equal to 1"),
    ("evaluate run d.npz --ahead x", "--ahead: expected an integer, got 'x'"),
    ("evaluate run d.npz --plot o.gif", "use one of .png, .svg, .pdf"),
    ("evaluate run d.npz --plot nowhere/o.png", "the folder nowhere does not exist"),
    ("evaluate run d.npz --plot /proc/o.png", "/proc/o.png cannot be written"),
    ("evaluate mech double.npz", "the model was fitted to 1 coordinates (q)"),
    # report, explore
    ("report nowhere", "nowhere is not a folder"),
    ("report results-none", "results-none"),
    ("report results-cut", "results-cut"),
    ("report results-odd", "results-odd"),
    ("report results-list", "results-list"),
    ("report results-none d.npz", "holds the results of a reproduction, which take no data"),
    ("report run d.npz -o nowhere/o.html", "the folder nowhere does not exist"),
    ("report run d.npz -o run", "run is a folder"),
    ("report run d.npz -o o.html --observe 0", "--observe should be greater than or equal to 1"),
    ("report run d.npz -o o.html --observe 99", "must number between 1 and 40"),
    ("report run d.npz -o o.html --ahead 1000", "1000 states cannot be compared"),
    ("report run d.npz -o o.html --train nowhere.npz", "there is no file nowhere.npz"),
    ("report run d.npz -o o.html --pictures a.txt", "a.txt is a file; name a folder"),
    ("report run d.npz -o o.txt", "the ending '.txt' chooses no format; use one of .html"),
    ("report run d.npz -o o.html --pictures /proc/x", "/proc/x cannot be written"),
    ("explore run d.npz -o o.txt", "the ending '.txt' chooses no format; use one of .html"),
    ("explore run pos.npz -o o.html", "these data have no momenta or velocities"),
    ("explore mech -o o.html", "mech holds mechanics; the explorer shows trained networks"),
    ("explore run d.npz -o nowhere/o.html", "the folder nowhere does not exist"),
    ("explore run double.npz -o o.html", "Use data of the same system"),
    ("explore run d.npz -o d.npz", "d.npz is an input"),
    ("report run d.npz -o o.html --train d.npz", "d.npz is named twice; name every file once"),
    ("report run d.npz -o o.html --train double.npz", "have other coordinates; name data alike"),
    ("report run one.npz -o o.html --observe 1", "must number between 1 and 0"),
    ("evaluate run short.npz", "--observe 16 leaves nothing to predict"),
    ("evaluate mech pos.npz --observe 1", "has fewer than two known positions"),
    ("infer run d.npz --target l,g", "the training data have no parameter 'l,g' to learn from"),
    ("interpolate run coarse.npz -o o.npz --factor 3", "these data have 0.4 / 3"),
    # names and places
    ("forecast pretrained: d.npz -o o.npz", "there is no pretrained model ''"),
    ("forecast pretrained:../x d.npz -o o.npz", "there is no pretrained model '../x'"),
    ("forecast run link.npz -o d.npz", "d.npz is an input and would be replaced"),
    ("forecast run d.npz -o link.npz", "link.npz is an input and would be replaced"),
    ("forecast run d.npz -o loop1", "loop1 is no usable file name: Too many levels"),
    ("forecast run /dev/null -o o.npz", "/dev/null: the ending '' is not one of"),
    ("forecast run . -o o.npz", ".: the ending '' is not one of"),
    ("forecast run d.npz -o .npz", ".npz: the ending '' chooses no format"),
    ("forecast run d.npz -o 'o.npz '", "the ending '.npz ' chooses no format"),
    ("forecast run d.npz -o o.npz --steps 1e3", "--steps: expected an integer, got '1e3'"),
    ("forecast run d.npz -o " + 300 * "x" + ".npz", "is no usable file name: File name too long"),
    ("infer run d.npz --target ''", "the training data have no parameter '' to learn from"),
    ("evaluate run d.npz --plot d.npz", "d.npz: the ending '.npz' chooses no format"),
    ("explore run d.npz -o /dev/full", "/dev/full is a device or pipe"),
    ("forecast pretrained:foo d.npz -o o.npz", ""),
]  # fmt: skip
