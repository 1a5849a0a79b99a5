"""Small boosted trees for a table with a number and a category."""

import numpy as np

from calibrant.boosting import BoostingClassifier

CLASSES = ("defect", "other", "parts")


def table(n=300):
    """A table whose values depend on nothing but n."""
    price = [None if i % 11 == 0 else float(i * 7 % 50) for i in range(n)]
    names = ("top", "low", None)
    shelf = [names[i * 5 % 3 if i % 4 else 2] for i in range(n)]
    return {"price": price, "shelf": shelf}


TABLE = table()


def labels(classes=CLASSES):
    """A class for each row of the table, which it mostly follows from."""
    codes = [
        (int((price or 0) > 25) + int(shelf == "low") + (i % 7 == 0)) % len(classes)
        for i, (price, shelf) in enumerate(zip(TABLE["price"], TABLE["shelf"], strict=True))
    ]
    return np.array(classes)[codes]


def fitted(classes=CLASSES, **options):
    """A classifier fitted to the table."""
    few = {
        "n_estimators": 20,
        "min_child_samples": 5,
        "num_leaves": 6,
        "choose_by": "last",
        "learning_rate": 0.2,
        "colsample_bytree": 1.0,
        "subsample": 1.0,
        "cat_smooth": 10.0,
        "reg_lambda": 0.0,
    }
    return BoostingClassifier(**{**few, "n_jobs": 1, **options}).fit(TABLE, labels(classes))


def boosting_scorer(classes=CLASSES, **options):
    """The model of a bundle."""
    return fitted(classes, **options).to_scorer()
