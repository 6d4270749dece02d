"""Features: x and z of candidates from named columns (`Features`) or from vectors (`FeatureMap`)."""

from hybandits.features.columns import ZERO, Boolean, Category, Feature, Labels, Number, Vector, plain_features
from hybandits.features.maps import MAPS, PAIR_PLACES, FeatureMap, split_name
from hybandits.features.named import COLUMNS, CONSTANT, Features

__all__ = [
    "COLUMNS", "CONSTANT", "MAPS", "PAIR_PLACES", "ZERO", "Boolean", "Category", "Feature", "FeatureMap", "Features",
    "Labels", "Number", "Vector", "plain_features", "split_name",
]  # fmt: skip
