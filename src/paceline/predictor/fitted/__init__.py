"""What published measurements taught the predictor: constants, shrunken effects, intervals."""
