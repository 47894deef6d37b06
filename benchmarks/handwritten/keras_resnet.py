"""ResNet-20 on CIFAR-sized images in Keras 3, on whichever backend it has."""

import keras
from keras import Input, Model, layers


def conv(x: object, width: int, stride: int = 1) -> object:
    if stride > 1:
        x = layers.ZeroPadding2D(1)(x)
    padding = "valid" if stride > 1 else "same"
    y = layers.Conv2D(width, 3, stride, padding, use_bias=False)(x)
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(y)


def widened(x: object, pad: int) -> object:
    return keras.ops.pad(x[:, ::2, ::2], [(0, 0), (0, 0), (0, 0), (pad, pad)])


def resnet20(widened: object = widened) -> Model:
    images = Input((32, 32, 3))
    x = layers.ReLU()(conv(images, 16))
    width_in = 16
    for stage, width in enumerate((16, 32, 64)):
        for block in range(3):
            stride = 2 if stage and block == 0 else 1
            y = conv(layers.ReLU()(conv(x, width, stride)), width)
            if stride > 1:
                x = widened(x, (width - width_in) // 2)
            x = layers.ReLU()(layers.Add()([x, y]))
            width_in = width
    return Model(images, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))
