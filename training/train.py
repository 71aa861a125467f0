"""Trains the models of `swiftwater-select` from rows of the laboratory (README.md).

    python train.py ROWS.csv OUT [--classifiers]

Writes to OUT: tcp.ubj, quic.ubj, single.ubj, golden vectors (tcp.tsv, quic.tsv), manifest.json, report.md.
All seeds are fixed: the same rows and library versions give the same models.
"""

import argparse
import hashlib
import json
import pathlib
import time

import numpy as np
import pandas as pd
import sklearn
import xgboost
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, precision_recall_fscore_support
from sklearn.model_selection import GroupKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

ALL = ["Retran_rate", "TTFB_avg", "RTT_avg", "TTFB", "resp_rec_G", "TTFB_rate", "req_cmpl_G"]
# The five of the paper's model for QUIC.
QUIC = ["Retran_rate", "TTFB_avg", "TTFB_rate", "resp_rec_G", "RTT_avg"]
INPUTS = {"tcp": ALL, "quic": QUIC, "single": ALL}
SEED = 1
FOLDS = 10
ROUNDS = 50
# Weight of a row where the network treats QUIC worse. The grid has two such cells for each other one, networks have few:
# of 100 users QUIC did not work for 4.4, and was limited for 0.3 (Langley et al., SIGCOMM 2017, section 7).
POLICED = 0.1
# Cells whose means differ by less are no example of either.
TIE = 0.03


def classifier(depth=7, child=1, rounds=ROUNDS):
    return xgboost.XGBClassifier(
        n_estimators=rounds, max_depth=depth, min_child_weight=child, learning_rate=0.3,
        tree_method="hist", objective="binary:logistic", random_state=SEED, n_jobs=1,
    )


def scores(truth, predicted, weight):
    precision, recall, f1, _ = precision_recall_fscore_support(
        truth, predicted, average="macro", zero_division=0, sample_weight=weight)
    return [accuracy_score(truth, predicted, sample_weight=weight), precision, recall, f1]


def fit(model, x, y, weight):
    """Fits a model, or the last step of a pipeline, to weighted rows; a neural net takes no weights."""
    last = model.steps[-1] if hasattr(model, "steps") else None
    if last is None:
        return model.fit(x, y, sample_weight=weight)
    if last[0] == "mlpclassifier":
        return model.fit(x, y)
    return model.fit(x, y, **{f"{last[0]}__sample_weight": weight})


def validate(make, rows, inputs, grouped):
    """Means over ten folds, and seconds of one fit."""
    x = rows[inputs].to_numpy(np.float32)
    y = rows["label"].to_numpy()
    weight = rows["weight"].to_numpy()
    if grouped:
        # A cell is in one fold only.
        parts = GroupKFold(FOLDS, shuffle=True, random_state=SEED).split(x, y, rows["cell"])
    else:
        parts = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED).split(x, y)
    found, seconds = [], []
    for train, test in parts:
        begun = time.perf_counter()
        model = fit(make(), x[train], y[train], weight[train])
        seconds.append(time.perf_counter() - begun)
        found.append(scores(y[test], model.predict(x[test]), weight[test]))
    return np.mean(found, axis=0), float(np.mean(seconds))


def ceiling(rows):
    """Accuracy of always the more frequent answer of each link and size of responses: who knows both exactly, but not what
    the network does to QUIC only, can't do better. Over TCP nothing is known of that."""
    sums = rows.groupby(["rate", "rtt", "loss", "bytes", "label"])["weight"].sum().unstack(fill_value=0.0)
    return float(sums.max(axis=1).sum() / sums.to_numpy().sum())


def others():
    """The other classifiers of the paper's Table II; they need values for what is missing."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.neural_network import MLPClassifier
    from sklearn.svm import SVC
    from sklearn.tree import DecisionTreeClassifier

    def complete(*steps):
        fill = SimpleImputer(strategy="constant", fill_value=-1.0, keep_empty_features=True)
        return make_pipeline(fill, *steps)

    return {
        "SVM": lambda: complete(StandardScaler(), SVC(random_state=SEED)),
        "decision tree": lambda: complete(DecisionTreeClassifier(random_state=SEED)),
        "random forest": lambda: complete(RandomForestClassifier(random_state=SEED, n_jobs=1)),
        "neural net (128, 64)": lambda: complete(
            StandardScaler(),
            MLPClassifier((128, 64), random_state=SEED, early_stopping=True, max_iter=60)),
    }


def boundary(rows):
    """The strawman: a linear boundary over round-trip time, bandwidth and loss."""
    rows = rows.dropna(subset=["RTT_avg", "bandwidth_mbps"])
    x = rows[["RTT_avg", "bandwidth_mbps", "Retran_rate"]].fillna(0.0)
    scaler = StandardScaler().fit(x)
    model = LogisticRegression(random_state=SEED).fit(
        scaler.transform(x), rows["label"], sample_weight=rows["weight"])
    weights = model.coef_[0] / scaler.scale_
    bias = model.intercept_[0] - float(np.dot(weights, scaler.mean_))
    return dict(zip(["rtt", "bandwidth", "loss"], map(float, weights)), bias=float(bias))


def golden(model, rows, inputs, path):
    """Rows with XGBoost's predictions; in a fifth of them something is missing."""
    some = rows.sample(60, random_state=SEED)[ALL].astype(np.float32).reset_index(drop=True)
    random = np.random.default_rng(SEED)
    for row in range(0, len(some), 5):
        some.iloc[row, random.integers(len(ALL))] = np.nan
    some["probability"] = model.predict_proba(some[inputs].to_numpy(np.float32))[:, 1]
    some.to_csv(path, sep="\t", index=False, na_rep="NaN", float_format="%.9g")


def table(lines, head):
    text = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return text + ["| " + " | ".join(map(str, line)) + " |" for line in lines]


def digits(values):
    return [f"{value:.4f}" for value in values]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--classifiers", type=int, default=0, metavar="ROWS",
                        help="compare the five classifiers on so many rows")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    rows = pd.read_csv(arguments.rows)
    cells = rows["cell"].nunique()
    difference = (rows["tcp_ms"] - rows["quic_ms"]).abs() / rows[["tcp_ms", "quic_ms"]].min(axis=1)
    rows = rows[difference >= TIE].replace([np.inf, -np.inf], np.nan)
    rows["label"] = (rows["quic_ms"] < rows["tcp_ms"]).astype(int)
    rows["weight"] = np.where(rows["policer"] == "none", 1.0, POLICED)
    by_cell = rows.drop_duplicates("cell")
    report = [
        f"{cells} cells, {len(by_cell)} of them with a difference of at least {TIE:.0%}; "
        f"QUIC is quicker in {by_cell['label'].mean():.1%} of these. {len(rows)} rows.", "",
    ]
    parts = {"tcp": rows[rows["in_use"] == "h2"], "quic": rows[rows["in_use"] == "h3"], "single": rows}
    manifest = {
        "rows_sha256": hashlib.sha256(arguments.rows.read_bytes()).hexdigest(),
        "versions": {"xgboost": xgboost.__version__, "scikit-learn": sklearn.__version__,
                     "pandas": pd.__version__, "numpy": np.__version__},
        "weight_of_policed_rows": POLICED, "rounds": ROUNDS, "seed": SEED, "window": "10 s, 5 to 50 requests",
        "boundary": boundary(rows), "models": {},
    }
    for name, own in parts.items():
        inputs = INPUTS[name]
        curve = []
        for depth in [3, 5, 7, 9]:
            for child in [1, 5]:
                grouped, _ = validate(lambda: classifier(depth, child), own, inputs, True)
                curve.append((grouped[0], depth, child))
        best = max(curve)
        report += [f"## {name}: {len(own)} rows", ""]
        report += table([[depth, child, f"{accuracy:.4f}"] for accuracy, depth, child in curve],
                        ["depth", "min child weight", "accuracy, split by cell"]) + [""]
        # The paper's choice, unless another one is better by a percent.
        depth, child = (best[1], best[2]) if best[0] > curve[4][0] + 0.01 else (7, 1)
        lines = []
        for split, grouped in [("rows", False), ("cells", True)]:
            found, seconds = validate(lambda: classifier(depth, child), own, inputs, grouped)
            lines.append(["XGBoost", split, len(own), *digits(found), f"{seconds:.2f}"])
        if arguments.classifiers and name != "single":
            few = own.sample(min(arguments.classifiers, len(own)), random_state=SEED)
            for title, make in {"XGBoost": lambda: classifier(depth, child), **others()}.items():
                for split, grouped in [("rows", False), ("cells", True)]:
                    found, seconds = validate(make, few, inputs, grouped)
                    lines.append([title, split, len(few), *digits(found), f"{seconds:.2f}"])
        report += table(lines, ["classifier", "split by", "rows", "accuracy", "precision", "recall",
                                "F1", "fit, s"]) + [""]
        model = classifier(depth, child).fit(own[inputs], own["label"], sample_weight=own["weight"])
        always = max(np.average(own["label"] == most, weights=own["weight"]) for most in [0, 1])
        report += [f"Always the more frequent answer: {always:.4f}", "",
                   f"Always the more frequent answer of the link and the size: {ceiling(own):.4f}", ""]
        path = arguments.out / f"{name}.ubj"
        model.get_booster().save_model(path)
        gains = model.get_booster().get_score(importance_type="gain")
        total = sum(gains.values())
        report += table([[key, f"{gains.get(key, 0) / total:.4f}"] for key in inputs],
                        ["feature", "share of gain"]) + [""]
        if name != "single":
            golden(model, own, inputs, arguments.out / f"{name}.tsv")
        manifest["models"][name] = {
            "file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "bytes": path.stat().st_size, "inputs": inputs, "depth": depth,
            "min_child_weight": child, "rows": len(own), "accuracy_by_row": float(lines[0][3]),
            "accuracy_by_cell": float(lines[1][3]),
        }
    (arguments.out / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
    (arguments.out / "report.md").write_text("\n".join(report))
    print("\n".join(report))


if __name__ == "__main__":
    main()
