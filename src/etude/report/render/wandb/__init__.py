"""Write the report of a study to Weights & Biases, and read runs back from there. No other report needs this."""
