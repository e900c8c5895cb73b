"""Messages for modules that a script imports but that are not installed."""

from __future__ import annotations

from tfrkit.compat.namespace import explain_missing

# Packages that converters use, by module name. Others are not guessed: anyone may own a package of that name.
_PACKAGES = {
    "Crypto": "pycryptodome",
    "PIL": "pillow",
    "absl": "absl-py",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "fitz": "pymupdf",
    "google": "protobuf",
    "magic": "python-magic",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
    **{
        name: name
        for name in (
            *("captcha", "contextlib2", "datasets", "h5py", "imageio", "jieba", "joblib", "librosa", "lxml", "nltk"),
            *("matplotlib", "nibabel", "numba", "pandas", "psutil", "pyarrow", "pycocotools", "pydicom", "rasterio"),
            *("requests", "scipy", "seaborn", "shapely", "six", "soundfile", "tifffile", "torch", "torchvision"),
            *("tqdm", "xmltodict"),
        )
    },
}
# Modules of Python 2 under their old names.
_PYTHON_2 = {
    "ConfigParser": "configparser",
    "HTMLParser": "html.parser",
    "Queue": "queue",
    "StringIO": "io",
    "Tkinter": "tkinter",
    "cPickle": "pickle",
    "urllib2": "urllib.request",
    "urlparse": "urllib.parse",
}
# These train models, or need a TensorFlow that does.
_TRAINING = (
    *("keras", "nets", "preprocessing", "slim", "tf_keras", "tf_slim", "tensorboard", "tensorflow_addons"),
    *("tensorflow_hub", "tensorflow_probability", "tensorflow_text"),
)


def explain_module(name: str) -> tuple[str, str]:
    """Return (message, hint) for a missing module."""
    top = name.partition(".")[0]
    if top in _PYTHON_2:
        return f"module {name} is part of Python 2 only", f"import {_PYTHON_2[top]} in its place"
    if top in _TRAINING:
        return f"module {name} is not installed, and tfrkit.compat does not train", explain_missing("tf.keras").advice
    if top == "object_detection":
        return (
            f"module {name} is not installed, and tfrkit.compat has only dataset_util, label_map_util and the like",
            "install the Object Detection API for it, or leave it out",
        )
    if top in _PACKAGES:
        return f"module {name} is not installed", f"install it: pip install {_PACKAGES[top]}"
    return f"module {name} is not installed, and is not next to the script", "install it, or put it there"
